// The definitions of the ops of control flow.
#pragma once

#include <vector>

#include "graph/op_def.hpp"

namespace troupe {

// For a registry: Switch, SwitchN, Merge, ControlTrigger; Call, If, Case, While; Argument; Saved,
// SavedList, SavedTrips; and loop_ops().
std::vector<OpDef> control_ops();

}  // namespace troupe
