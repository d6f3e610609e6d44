// The definitions of control flow ops.
#pragma once

#include <vector>

#include "graph/op_def.hpp"

namespace troupe {

// The ops for a registry: Switch, SwitchN, Merge, ControlTrigger; Call, If, Case, While; Argument;
// Saved, SavedList, SavedTrips; and loop_ops().
std::vector<OpDef> control_ops();

}  // namespace troupe
