// What became of a job after a fault.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/chaos/faults.hpp"

namespace troupe {

// One fault in one job, up to the first step that had not been made before.
struct Disturbance {
  Status injected;
  std::optional<double> next_step_ms;  // from the fault on; none: it did not come
  std::uint64_t twice = 0;             // steps made again
};
// Begins the fault now. A job that is to end is not waited for.
Disturbance disturb(ChaosJob& job, const Fault& fault, Random& random);

// Those of one fault.
struct Figures {
  int done = 0;
  std::vector<double> next_step_ms, twice;
  void add(const Disturbance& one);
};

// The value that so large a share of them is not above; 0 of none.
double percentile_or_zero(const std::vector<double>& of, double share);

// Whether it says one of these causes.
bool names_one(const std::string& text, const std::vector<std::string>& causes);

}  // namespace troupe
