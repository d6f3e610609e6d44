// What is said of figures that were measured several times.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// The smallest value that at least `share` of the values do not exceed. REQUIRES: at least one.
inline double percentile(std::vector<double> values, double share) {
  TROUPE_CHECK(!values.empty(), "a percentile of nothing");
  double rank = std::ceil(share * double(values.size()));
  auto at = values.begin() + std::clamp<std::ptrdiff_t>(std::ptrdiff_t(rank) - 1, 0,
                                                        std::ptrdiff_t(values.size()) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// The middle one; of an even count the lower of the two. REQUIRES: at least one.
inline double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

// The middle one of the ratios of a round each: a phase in which the machine is slow is in both
// sides of one. REQUIRES: as many of either, at least one.
inline double median_ratio(const std::vector<double>& values, const std::vector<double>& others) {
  TROUPE_CHECK(values.size() == others.size(), "a round has both sides");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < values.size(); ++i) ratios.push_back(values[i] / others[i]);
  return median(std::move(ratios));
}

}  // namespace troupe
