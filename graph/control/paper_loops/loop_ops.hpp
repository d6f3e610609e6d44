// The ops of client loops as in the paper (4.4). Compiling turns them into a While (raise.hpp), so
// they are never run.
#pragma once

#include <vector>

#include "graph/op_def.hpp"

namespace troupe {

// The ops for a registry: Enter, Leave, Exit, NextIteration, LoopCond.
std::vector<OpDef> loop_ops();

}  // namespace troupe
