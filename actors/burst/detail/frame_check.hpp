// Are the frames of a plan what PlanFrame says?
#pragma once

#include "core/status.hpp"
#include "graph/plan.hpp"

namespace troupe::detail {

// REQUIRES: indices of nodes, slots and edges are in range, edges lead onward. invalid_argument for
// frames that do not hang together; unimplemented for a loop with nodes that wait for the outside.
Status check_frames(const Plan& plan);

}  // namespace troupe::detail
