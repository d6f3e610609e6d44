// When an actor that acts as time passes sends itself its next Tick.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// Which timers an actor has to set. One that is set cannot be taken back: when something comes to
// be due earlier, one more is set, and the later one still fires. So a timer that fires in vain
// sets no other unless it was the next one, and at most kMost are under way, however often the time
// changes: the first kExact are set to the very instant, those beyond to steps towards it.
//
// Owned by one actor; no clock. After every message the actor asks want() and sets the timer that
// it says; with every Tick it asks fired() before.
class WakeUp {
 public:
  static constexpr std::size_t kExact = 4, kMost = 8;
  // How much later than wanted fired() may say true, and only when more than kExact are under way.
  static constexpr Instant kLate = std::chrono::microseconds(64);

  // The actor wants to be woken at `at`, no longer at what it said before. How long from `now` the
  // timer runs that it has to set, if any.
  std::optional<Instant> want(Instant at, Instant now);
  // A timer went off. True: it is time.
  bool fired(Instant now);

  std::size_t under_way() const { return due_.size(); }

 private:
  Instant wanted_ = kNever;
  std::vector<Instant> due_;  // of the timers under way, latest first
};

}  // namespace troupe
