// Writes in functions that belong to training steps alone.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/passes/pass.hpp"

namespace troupe {

// Attribute of a write, a bool: only steps of which a node kMoveAveragesOp is a part do it.
inline constexpr std::string_view kTrainingOnlyAttr = "training_only";
// Asks for such writes: its control inputs are these, or nodes that run functions with them.
inline constexpr std::string_view kMoveAveragesOp = "MoveAverages";

// The functions that have such writes, or call one that has.
std::set<std::string> functions_with_averages(const std::vector<FunctionDef>& functions,
                                              const OpRegistry& ops);

// A step runs a write outside of functions when it needs it. The writes in a function are run by
// whatever runs the function, so those of training steps are left out here: unless the step asks
// for them, calls run a function without them, of a name with "@". A function in which a loss is
// minimised asks for itself.
void leave_out_averages(StepGraph& step, const OpRegistry& ops);

}  // namespace troupe
