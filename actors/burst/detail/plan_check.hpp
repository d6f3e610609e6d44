// Checks a plan, possibly of another process, so that it can be run without further checks.
#pragma once

#include "core/status.hpp"
#include "graph/plan.hpp"

namespace troupe::detail {

// invalid_argument for an index out of range, an edge to an earlier node, an input that no edge
// waits for, a count that does not fit its word; and the errors of check_frames.
Status check_plan(const Plan& plan);

}  // namespace troupe::detail
