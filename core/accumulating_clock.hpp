// A clock that nobody can be blamed by for a time in which it was not looked at.
#pragma once

#include <algorithm>
#include <chrono>

namespace troupe {

// Time as the process that owns the clock has lived it: each look adds what has passed since the
// look before, but at most `most`. Whoever was stopped for an hour finds that `most` has passed,
// and takes nobody for silent because of that hour; whoever always looks late still gets ahead, so
// that nobody stays unsuspected for ever. Deadlines against it are met by a process that can work,
// as long as it can.
//
// Moments are those of one steady clock. Owned by the thread that looks.
class AccumulatingClock {
 public:
  using Time = std::chrono::nanoseconds;

  explicit AccumulatingClock(Time most = std::chrono::milliseconds(100)) : most_(most) {}

  // REQUIRES: moments do not go back.
  void look(Time moment) { look(moment, most_); }
  // The same with another limit: none for a time in which nobody waited for a deadline.
  void look(Time moment, Time most) {
    if (!looked_) before_ = last_ = moment;
    looked_ = true;
    read_before_ = read_;
    read_ += std::min(moment - last_, most);
    before_ = last_;
    last_ = moment;
  }
  // What it showed at the last look; 0 before the second.
  Time reading() const { return read_; }
  // What it shows, or showed, at a moment since the last look but one. Earlier moments are taken
  // for that one.
  Time at(Time moment) const {
    if (!looked_) return read_;
    if (moment >= last_) return read_ + std::min(moment - last_, most_);
    return std::min(read_, read_before_ + std::max(Time(0), moment - before_));
  }

 private:
  Time most_;
  bool looked_ = false;
  Time before_{}, last_{};       // moments of the last two looks
  Time read_before_{}, read_{};  // what it showed then
};

}  // namespace troupe
