// How fast a job is, for whoever looks at it from outside.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe {

// The last steps of a job and the time that they took, as one number that another process can read
// at any moment. They are those of the last one to two seconds, but at least one step, so that a
// job of slow steps has a speed, too. The first step, which also compiles, does not count.
//
// One thread, or copies of packed(); the caller passes the time, which may stand still.
class Pace {
 public:
  // The job has done this step. Steps may be left out.
  void step(std::uint64_t number, std::int64_t now_ms) {
    const Mark now{number, now_ms};
    if (!begun_ || number < middle_.step || now_ms < middle_.ms) {
      begun_ = true;
      from_ = middle_ = now;
      packed_ = 0;
      return;
    }
    const std::uint64_t steps = now.step - from_.step, ms = std::uint64_t(now.ms - from_.ms);
    if (steps > 0 && ms > 0) packed_ = std::min(steps, kMost) << 32 | std::min(ms, kMost);
    if (now.ms - middle_.ms < kWindow) return;
    from_ = middle_;
    middle_ = now;
  }

  // 0: unknown yet.
  std::uint64_t packed() const { return packed_; }

  // Steps per second; 0: unknown. `idle_ms`: for how long the job has done none. A step that takes
  // much longer than those before shows.
  static double per_second(std::uint64_t packed, std::int64_t idle_ms) {
    const double steps = double(packed >> 32), ms = double(packed & kMost);
    if (steps == 0 || ms == 0) return 0;
    const double late = std::max(2 * ms / steps, double(kWindow));
    return double(idle_ms) > late ? std::min(steps / ms, 1 / double(idle_ms)) * 1e3
                                  : steps / ms * 1e3;
  }

 private:
  struct Mark {
    std::uint64_t step = 0;
    std::int64_t ms = 0;
  };
  static constexpr std::int64_t kWindow = 1000;
  static constexpr std::uint64_t kMost = 0xffff'ffff;

  bool begun_ = false;
  Mark from_, middle_;
  std::uint64_t packed_ = 0;
};

}  // namespace troupe
