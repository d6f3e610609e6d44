// StreamProgress: how far the work of one stream has come, and who waits for it. The bookkeeping
// that asynchronous devices share; what the work is and who does it is theirs.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include "core/check.hpp"
#include "core/status.hpp"
#include "devices/detail/lane_pool.hpp"
#include "devices/device.hpp"

namespace troupe::detail {

// Guarded by the mutex of its device, which the functions that take a lock release while they call
// back. Work has numbers from 1 in the order of its issue, and is over in that order.
class StreamProgress {
 public:
  explicit StreamProgress(std::uint32_t stream) : stream_(stream) {}

  Ticket issue() { return {stream_, ++issued_}; }
  std::uint64_t issued() const { return issued_; }
  std::uint64_t done() const { return done_; }
  bool reached(std::uint64_t sequence) const { return done_ >= sequence; }
  bool failed() const { return failed_at_ != 0; }
  // Nothing is under way, and nobody is being called back.
  bool idle() const { return done_ == issued_ && !calling_; }
  // Work that is done and went well needs no more waiting.
  Ticket last() const {
    return done_ == issued_ && !failed() ? Ticket{} : Ticket{stream_, issued_};
  }

  // Everything up to `sequence` is over. The first failure stays.
  void finish(std::uint64_t sequence, Status status = {}) {
    if (!status.ok()) fail_from(sequence, std::move(status));
    done_ = std::max(done_, sequence);
  }
  // What was issued and is not over has failed, and so will all that follows.
  void abandon(Status status) {
    fail_from(done_ + 1, std::move(status));
    done_ = issued_;
  }
  // What became of work `sequence`. REQUIRES: reached(sequence).
  Status status_of(std::uint64_t sequence) const {
    return failed() && sequence >= failed_at_ ? failure_ : ok_status();
  }
  const Status& failure() const { return failure_; }

  // Of Device::on_complete. The list stays in ticket order, whenever callers ask for which ticket.
  void on_complete(std::unique_lock<std::mutex>& lock, std::uint64_t sequence,
                   std::function<void(Status)> done) {
    TROUPE_CHECK(sequence <= issued_, "a ticket of another device");
    if (!reached(sequence)) {
      auto at = callbacks_.end();
      while (at != callbacks_.begin() && std::prev(at)->sequence > sequence) --at;
      callbacks_.insert(at, {sequence, std::move(done)});
      return;
    }
    const Status status = status_of(sequence);
    lock.unlock();
    done(status);
    lock.lock();
  }
  // Somebody waits for what is over.
  bool due() const { return !callbacks_.empty() && reached(callbacks_.front().sequence); }
  // Tells those who wait for what is over. By the one thread of the stream.
  void call_back(std::unique_lock<std::mutex>& lock) {
    calling_ = true;
    while (due()) {
      Callback callback = std::move(callbacks_.front());
      callbacks_.pop_front();
      const Status status = status_of(callback.sequence);
      lock.unlock();
      callback.done(status);
      callback.done = nullptr;
      lock.lock();
    }
    calling_ = false;
  }

 private:
  struct Callback {
    std::uint64_t sequence;
    std::function<void(Status)> done;
  };
  void fail_from(std::uint64_t sequence, Status status) {
    if (failed()) return;
    failed_at_ = sequence;
    failure_ = std::move(status);
  }

  const std::uint32_t stream_;
  std::uint64_t issued_ = 0, done_ = 0;
  std::uint64_t failed_at_ = 0;  // 0: nothing has
  Status failure_;
  std::deque<Callback> callbacks_;
  bool calling_ = false;
};

// Waits until neither lanes nor streams have work left: bursts issue work, whose callbacks launch
// bursts. `idle()` says whether the streams have none, and `changed` tells when that may be.
template <class Idle>
void drain(LanePool& lanes, std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
           Idle idle) {
  do {
    lock.unlock();
    lanes.drain();
    lock.lock();
    changed.wait(lock, idle);
  } while (!lanes.idle());
}

}  // namespace troupe::detail
