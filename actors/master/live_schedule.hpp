// When the next LiveList is due.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/transaction.hpp"

namespace troupe {

// The idle COMMIT has no answer: it is repeated, ever later, so that a lost one does no harm. Part
// of the coordinator.
class LiveSchedule {
 public:
  // `first`: how long after one the next follows.
  explicit LiveSchedule(Instant first) : first_(first) {}

  // Something has changed: one is due after `delay` at the latest.
  void soon(Instant now, Instant delay) {
    at_ = std::min(at_, now + delay);
    repeats_ = kRepeats;
  }
  bool due(Instant now) const { return at_ <= now; }
  Instant next() const { return at_; }
  // One is sent now. Returns its number.
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
