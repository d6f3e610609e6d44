#include "actors/wake_up.hpp"

#include <algorithm>

namespace troupe {
namespace {

// Of timers that are set one after the other, each to an earlier instant, each runs shorter than
// the one before. Those that run for one of these times are therefore as many as these at most.
constexpr Instant kSteps[] = {std::chrono::microseconds(64), std::chrono::milliseconds(2),
                              std::chrono::milliseconds(64), std::chrono::seconds(2)};
static_assert(std::size(kSteps) == WakeUp::kMost - WakeUp::kExact && kSteps[0] == WakeUp::kLate);

Instant step_towards(Instant distance) {
  auto longer = std::upper_bound(std::begin(kSteps), std::end(kSteps), distance);
  return longer == std::begin(kSteps) ? kSteps[0] : *std::prev(longer);
}

}  // namespace

std::optional<Instant> WakeUp::want(Instant at, Instant now) {
  wanted_ = at;
  if (at == kNever) return std::nullopt;
  Instant runs = std::max(Instant{0}, at - now);
  if (due_.size() >= kExact) runs = step_towards(runs);
  if (!due_.empty() && due_.back() <= std::max(at, now + runs)) return std::nullopt;
  due_.push_back(now + runs);
  return runs;
}

bool WakeUp::fired(Instant now) {
  if (!due_.empty()) due_.pop_back();
  return wanted_ <= now;
}

}  // namespace troupe
