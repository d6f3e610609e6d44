#include "actors/supervision/restart_budget.hpp"

#include <algorithm>

namespace troupe {

std::optional<Instant> RestartBudget::died(Instant now) {
  if (left(now) == 0) return std::nullopt;
  while (!restarts_.empty() && restarts_.front() + options_.window <= now) restarts_.pop_front();
  Instant delay = options_.first_delay;
  for (std::size_t i = 0; i < restarts_.size() && delay < options_.max_delay; ++i) delay *= 2;
  delay = std::min(delay, options_.max_delay);
  restarts_.push_back(now);
  // Jitter over the upper half, so that children which died together do not come back together.
  const auto half = std::uint64_t(delay.count() / 2);
  return delay - Instant(std::int64_t(random_.below(half + 1)));
}

void RestartBudget::progressed() { restarts_.clear(); }

std::size_t RestartBudget::left(Instant now) const {
  auto recent = std::size_t(std::count_if(restarts_.begin(), restarts_.end(),
                                          [&](Instant at) { return at + options_.window > now; }));
  return options_.restarts - std::min(options_.restarts, recent);
}

}  // namespace troupe
