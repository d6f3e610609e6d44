// Which datasets a plan reads, and how many elements of each.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/plan.hpp"

namespace troupe {

// A dataset of the plan: what START names elements of.
struct DatasetRead {
  std::uint32_t resource = 0;
  std::uint32_t elements = 1;  // that a run takes: one for each replica
  bool open = false;           // as many as its loops ask for, in rounds of so many
};

// In the order of the plan's resources.
std::vector<DatasetRead> dataset_reads(const Plan& plan);

}  // namespace troupe
