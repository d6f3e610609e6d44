// Writes in functions that only training steps run.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/passes/pass.hpp"

namespace troupe {

// Attribute of a write, a bool: only steps with a kMoveAveragesOp node run it.
inline constexpr std::string_view kTrainingOnlyAttr = "training_only";
// Requests such writes: its control inputs are these, or nodes that run functions with them.
inline constexpr std::string_view kMoveAveragesOp = "MoveAverages";

// The functions with such writes, or with calls of such functions.
std::set<std::string> functions_with_averages(const std::vector<FunctionDef>& functions,
                                              const OpRegistry& ops);

// A step runs a write outside functions only if it needs it, but a call runs all writes of its
// function. So unless the step requests training-only writes, this replaces such functions by
// copies without them, with an "@" in the name. A function in which a loss is minimised requests
// its own.
void leave_out_averages(StepGraph& step, const OpRegistry& ops);

}  // namespace troupe
