#include "core/clock_offset.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::int64_t kClockPerDrift = 10'000;  // 100 ppm: two quartzes, 50 ppm each

std::int64_t drift(std::int64_t ns) { return std::max<std::int64_t>(0, ns) / kClockPerDrift; }

}  // namespace

void ClockOffset::exchange(std::int64_t sent, std::int64_t arrived, std::int64_t answered,
                           std::int64_t received) {
  // Times of this size are of no machine, and the sums below cannot overflow.
  for (std::int64_t time : {sent, arrived, answered, received})
    if (time < 0 || time > kLongest) return;
  const std::int64_t away = received - sent, there = answered - arrived;
  if (there < 0 || there > away) return;
  const std::int64_t error = (away - there + 1) / 2 + drift(away);
  if (known_ && error > error_ + drift(received - measured_)) return;
  offset_ = ((arrived - sent) + (answered - received)) / 2;
  error_ = error;
  measured_ = received;
  known_ = true;
}

std::optional<ClockOffset::Estimate> ClockOffset::at(std::int64_t now) const {
  if (!known_) return std::nullopt;
  return Estimate{offset_, error_ + drift(now - measured_)};
}

}  // namespace troupe
