// When a thread that serves messages looks out for the next one before it sleeps.
#pragma once

#include <algorithm>
#include <chrono>

namespace troupe {

// A message often answers the last one and comes sooner than a wake-up would take, so its thread
// looks out for it, giving its processor away meanwhile. Where others compute there, it gets the
// processor back only when the kernel next looks (4 ms with 250 Hz), even if another one is idle:
// a thread that slept would have been woken on that. After such a delay it does not look out for
// some time, which doubles with each that follows before as much time has passed without one.
class LookOut {
 public:
  using Time = std::chrono::steady_clock::time_point;

  bool pays(Time now) const { return now >= next_; }
  // The processor was given away at `left` and is back at `back`. False: look out no longer.
  bool goes_on(Time left, Time back) {
    if (back - left < kDelay) return true;
    pause_ = std::clamp(2 * pause_, kShortest, kLongest);
    next_ = back + pause_;
    return false;
  }
  // It ended without a delay.
  void was_undisturbed(Time now) {
    if (now - next_ < pause_) return;
    pause_ /= 2;
    next_ = now;
  }

  static constexpr std::chrono::microseconds kDelay{200};
  static constexpr std::chrono::nanoseconds kShortest = std::chrono::milliseconds(10),
                                            kLongest = std::chrono::seconds(1);

 private:
  Time next_{};
  std::chrono::nanoseconds pause_{};
};

}  // namespace troupe
