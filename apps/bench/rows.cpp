#include "troupe/apps/bench/rows.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

bool wanted(const BenchOptions& options, const std::string& name) {
  return name.find(options.only) != std::string::npos;
}

double percentile(std::vector<double> values, double share) {
  TROUPE_CHECK(!values.empty(), "a percentile of nothing");
  double rank = std::ceil(share * double(values.size()));
  auto at = values.begin() + std::clamp<std::ptrdiff_t>(std::ptrdiff_t(rank) - 1, 0,
                                                        std::ptrdiff_t(values.size()) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

}  // namespace troupe
