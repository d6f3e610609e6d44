// The time, as cheap as it gets.
#pragma once

#include <time.h>

#include <cstdint>

namespace troupe {

// Nanoseconds since some moment of the machine's, exact to a few milliseconds. For what is noted
// far more often than anybody asks: it costs a few nanoseconds.
inline std::int64_t coarse_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace troupe
