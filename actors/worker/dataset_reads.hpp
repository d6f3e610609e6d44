// The datasets that a plan reads, and how many elements of each.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/plan.hpp"

namespace troupe {

// A dataset of the plan: START assigns its elements.
struct DatasetRead {
  std::uint32_t resource = 0;
  std::uint32_t elements = 1;  // taken by a run: one for each replica
  bool open = false;           // loops take any number, in rounds of `elements`
};

// In the order of the plan's resources.
std::vector<DatasetRead> dataset_reads(const Plan& plan);

}  // namespace troupe
