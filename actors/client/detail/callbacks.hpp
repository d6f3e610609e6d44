// What a session calls of the client's: callbacks of runs, and watchers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/client/session.hpp"

namespace troupe::detail {

// Calls the client's callbacks, which may start runs. A thread that needs the session alone, or
// ends the runtime, holds them back: they would wait for its locks on threads that it waits for.
// They are called later, by let_go(). Any thread.
class Callbacks {
 public:
  // Whether this thread is in a callback.
  static bool here() { return depth > 0; }
  void call(std::function<void()> f) {
    {
      std::lock_guard lock(mutex_);
      if (held_ > 0) return later_.push_back(std::move(f));
      ++running_;
    }
    run(std::move(f));
    std::lock_guard lock(mutex_);
    if (--running_ == 0) none_runs_.notify_all();
  }
  // Waits until no callback is under way. REQUIRES: !here().
  void hold() {
    std::unique_lock lock(mutex_);
    ++held_;
    none_runs_.wait(lock, [&] { return running_ == 0; });
  }
  // REQUIRES: the caller holds no lock that a callback may wait for.
  void let_go() {
    std::vector<std::function<void()>> left;
    {
      std::lock_guard lock(mutex_);
      if (--held_ == 0) left.swap(later_);
    }
    for (auto& f : left) call(std::move(f));
  }

 private:
  // An exception ends the process, since this is a thread of the runtime. Destroys `f` afterwards.
  static void run(std::function<void()> f) noexcept {
    ++depth;
    f();
    f = nullptr;
    --depth;
  }
  inline static thread_local int depth = 0;
  std::mutex mutex_;
  std::condition_variable none_runs_;
  int held_ = 0, running_ = 0;
  std::vector<std::function<void()>> later_;
};

class CallbacksHeld {
 public:
  explicit CallbacksHeld(std::shared_ptr<Callbacks> callbacks) : callbacks_(std::move(callbacks)) {
    callbacks_->hold();
  }
  ~CallbacksHeld() { callbacks_->let_go(); }
  CallbacksHeld(const CallbacksHeld&) = delete;
  CallbacksHeld& operator=(const CallbacksHeld&) = delete;

 private:
  const std::shared_ptr<Callbacks> callbacks_;
};

// The watchers of a session. Any thread.
class Watchers {
 public:
  using Watcher = std::function<void(const SessionEvent&)>;
  explicit Watchers(std::shared_ptr<Callbacks> callbacks) : callbacks_(std::move(callbacks)) {}

  std::uint64_t add(Watcher watcher) {
    auto added = std::make_shared<One>(std::move(watcher));
    std::unique_lock lock(mutex_);
    const std::uint64_t number = ++last_;
    all_.emplace(number, added);
    any_ = true;
    const std::optional<SessionEvent> ended = ended_;
    lock.unlock();
    if (ended) call(std::move(added), *ended);
    return number;
  }
  // The watcher is not called any more. Waits for a call under way, but not in a callback, which
  // may be that call.
  void remove(std::uint64_t number) {
    std::shared_ptr<One> one;
    {
      std::lock_guard lock(mutex_);
      const auto found = all_.find(number);
      if (found == all_.end()) return;
      one = std::move(found->second);
      all_.erase(found);
      any_ = !all_.empty();
    }
    std::unique_lock lock(one->mutex);
    one->removed = true;
    if (!Callbacks::here()) one->over.wait(lock, [&] { return one->calls == 0; });
  }
  // The end of the session, once it is told.
  std::optional<SessionEvent> ended() const {
    std::lock_guard lock(mutex_);
    return ended_;
  }
  // What was lost last, unless the session has recovered since.
  std::optional<SessionEvent> lost() const {
    std::lock_guard lock(mutex_);
    return lost_;
  }
  void tell(const SessionEvent& event) {
    const bool ends = event.kind == SessionEvent::Kind::ended;
    if (!any_ && event.kind == SessionEvent::Kind::committed) return;
    std::vector<std::shared_ptr<One>> told;
    {
      std::lock_guard lock(mutex_);
      if (ends && ended_) return;
      if (ends) ended_ = event;
      if (event.kind == SessionEvent::Kind::lost) lost_ = event;
      if (event.kind == SessionEvent::Kind::recovered) lost_.reset();
      for (const auto& [_, watcher] : all_) told.push_back(watcher);
    }
    for (auto& one : told) call(std::move(one), event);
  }

 private:
  struct One {
    explicit One(Watcher w) : watcher(std::move(w)) {}
    const Watcher watcher;
    std::mutex mutex;
    std::condition_variable over;
    int calls = 0;  // under way
    bool removed = false;
  };
  void call(std::shared_ptr<One> one, const SessionEvent& event) {
    callbacks_->call([one = std::move(one), event] {
      {
        std::lock_guard lock(one->mutex);
        if (one->removed) return;
        ++one->calls;
      }
      one->watcher(event);
      std::lock_guard lock(one->mutex);
      if (--one->calls == 0) one->over.notify_all();
    });
  }

  const std::shared_ptr<Callbacks> callbacks_;
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::shared_ptr<One>> all_;
  std::optional<SessionEvent> ended_;  // told to later watchers, too
  std::optional<SessionEvent> lost_;
};

}  // namespace troupe::detail
