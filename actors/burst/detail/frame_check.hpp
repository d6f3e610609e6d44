// Checks that the frames of a plan are as PlanFrame describes.
#pragma once

#include "core/status.hpp"
#include "graph/plan.hpp"

namespace troupe::detail {

// REQUIRES: indices of nodes, slots and edges are in range, and edges lead to later nodes.
// invalid_argument for inconsistent frames; unimplemented for ordered External nodes in a loop.
Status check_frames(const Plan& plan);

}  // namespace troupe::detail
