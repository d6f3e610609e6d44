// The words in which a client writes a loop of its own (the paper, 4.4). Compiling makes a While of
// them (raise.hpp): none is ever run.
#pragma once

#include <vector>

#include "graph/op_def.hpp"

namespace troupe {

// For a registry: Enter, Leave, Exit, NextIteration, LoopCond.
std::vector<OpDef> loop_ops();

}  // namespace troupe
