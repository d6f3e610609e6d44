// A client's wait for the runtime: the one place where a thread outside the actor system blocks.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "core/transaction.hpp"
#include "core/wait.hpp"

namespace troupe {

// What a call comes back with; which fields are set depends on the call.
struct CallResult {
  Status status;
  std::vector<Tensor> fetches;
  CommitNumber committed = 0;  // 0: the run wrote nothing
  CommitNumber seen = 0;       // nothing that it saw is of a later commit
  CommitNumber snapshot = 0;   // of the variables that a run read
  CommitNumber behind = 0;     // of an immediate run (RunAnswer::behind)
  bool moved = false;          // the place of a dataset or the draws, but the run wrote nothing
  std::shared_ptr<const JobPlace> place;  // of a run that asked for it; else null
  CompiledId compiled = 0;
  bool only_reads = false;  // of the compiled step: StepShape::only_reads()
  bool unloaded = false;    // the run's compiled step is: compile it again
  std::vector<std::string> text;
  std::vector<Wait> waits;
};

// One call under way. Made by the client, shared with the master, which finishes it exactly once.
// The waiter spins for at most 50 us, since a short step is over by then, and sleeps afterwards.
class Call {
 public:
  // Any thread of the runtime. A second finish is ignored.
  void finish(const CallResult& result) { finish(CallResult(result)); }
  void finish(CallResult&& result) {
    std::vector<std::function<void(const CallResult&)>> then;
    {
      std::lock_guard lock(mutex_);
      if (done_.load(std::memory_order_relaxed)) return;
      result_ = std::move(result);
      done_.store(true, std::memory_order_release);
      then.swap(then_);
    }
    ready_.notify_all();
    for (const auto& each : then) each(result_);
  }
  bool done() const { return done_.load(std::memory_order_acquire); }

  // REQUIRES: done().
  CallResult& result() { return result_; }

  CallResult& wait(bool spin = true) {
    if (done()) return result_;
    if (spin) {
      auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
      while (!done() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    }
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return done(); });
    return result_;
  }
  // False when `until` came first.
  bool wait_until(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    return ready_.wait_until(lock, until, [&] { return done(); });
  }
  // Calls `f` once, when the result is there: at once if it is, else from the runtime's thread.
  void then(std::function<void(const CallResult&)> f) {
    {
      std::lock_guard lock(mutex_);
      if (!done()) {
        then_.push_back(std::move(f));
        return;
      }
    }
    f(result_);
  }

 private:
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::condition_variable ready_;
  CallResult result_;
  std::vector<std::function<void(const CallResult&)>> then_;
};

}  // namespace troupe
