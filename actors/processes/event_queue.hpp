// Passes events of many threads to the one that handles them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "core/transaction.hpp"

namespace troupe {

// Monotonic time, as state machines take it.
inline Instant steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

// Events in the order in which they came. Any thread pushes; one thread at a time takes. A push
// after the last take is dropped with the queue.
class EventQueue {
 public:
  using Event = std::function<void()>;

  void push(Event event) {
    {
      std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    some_.notify_one();
  }
  // The next event; empty if none comes before `until`.
  Event take(Instant until) {
    std::unique_lock lock(mutex_);
    auto some = [&] { return !events_.empty(); };
    if (until == kNever)
      some_.wait(lock, some);
    else if (!some_.wait_until(lock, std::chrono::steady_clock::time_point(until), some))
      return {};
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  bool empty() const {
    std::lock_guard lock(mutex_);
    return events_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable some_;
  std::deque<Event> events_;
};

}  // namespace troupe
