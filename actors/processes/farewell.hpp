// How long to wait for processes that are to end.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

namespace troupe {

// Decides for each process that was asked to end: wait, kill it, or give it up. One that is stopped
// cannot leave and is killed at once, any other when `patience` is over. One that has not ended
// `grace` after it was killed cannot be ended (the kernel does not let it go) and is given up.
//
// Owned by the waiting thread. No clock: times are from a clock of the caller's that stops while
// this process does, and never goes back.
class Farewell {
 public:
  using Time = std::chrono::nanoseconds;
  enum class Deed : std::uint8_t { wait, kill, give_up };

  Farewell(Time now, Time patience, Time grace) : until_(now + patience), grace_(grace) {}

  // For a process that has not ended.
  Deed look(std::int64_t process, bool stopped, Time now) {
    auto killed = killed_.find(process);
    if (killed != killed_.end()) return now - killed->second >= grace_ ? Deed::give_up : Deed::wait;
    if (!stopped && now < until_) return Deed::wait;
    killed_[process] = now;
    return Deed::kill;
  }

 private:
  Time until_, grace_;
  std::map<std::int64_t, Time> killed_;  // when
};

}  // namespace troupe
