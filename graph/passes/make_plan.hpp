// Flattens a partitioned step into plans.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/control/lowering/frames.hpp"
#include "graph/passes/partition.hpp"
#include "graph/plan.hpp"

namespace troupe {

// One plan per partition. Nodes are in the order of the step, which is topological; feeds have the
// first slots. A loop is one node, followed by its frame. REQUIRES: `frames` are the step's, each
// in one partition.
std::vector<Plan> make_plans(StepGraph step, const Partitions& partitions, const Frames& frames,
                             const OpRegistry& ops);

// The peak bytes of step memory if nodes run in the order of the plan and nothing is computed in
// place. Counts allocations of kernels and arrivals with statically known shapes; not constants,
// feeds, variables, scratch memory of kernels, or tensors of unknown shape.
std::uint64_t liveness_bound_bytes(const Plan& plan);

}  // namespace troupe
