// Is a plan one that can be run without looking at it again? Plans may come from another process.
#pragma once

#include "core/status.hpp"
#include "graph/plan.hpp"

namespace troupe::detail {

// invalid_argument for an index out of range, an edge that goes back, an input that no edge waits
// for, a count that does not fit, frames that are none; unimplemented as check_frames says.
Status check_plan(const Plan& plan);

}  // namespace troupe::detail
