// When the next LiveList is due.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/transaction.hpp"

namespace troupe {

// A LiveList has no answer: it is repeated a few times at growing intervals, in case one is lost.
// Part of the coordinator.
class LiveSchedule {
 public:
  // `first`: the first interval.
  explicit LiveSchedule(Instant first) : first_(first) {}

  // Something has changed: a list is due after at most `delay`.
  void soon(Instant now, Instant delay) {
    at_ = std::min(at_, now + delay);
    repeats_ = kRepeats;
  }
  bool due(Instant now) const { return at_ <= now; }
  Instant next() const { return at_; }
  // A list is sent now. Returns its number.
  std::uint64_t sent(Instant now) {
    at_ = repeats_ > 0 ? now + first_ * (1 << (kRepeats - repeats_)) : kNever;
    --repeats_;
    return ++sequence_;
  }

 private:
  static constexpr int kRepeats = 6;
  const Instant first_;
  std::uint64_t sequence_ = 0;
  Instant at_ = kNever;
  int repeats_ = 0;
};

}  // namespace troupe
