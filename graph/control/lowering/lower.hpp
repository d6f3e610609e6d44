// Turns calls of functions into plain nodes: the paper's primitives (section 4.4).
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// Replaces every node of role `call` by the nodes of its functions, named "callsite/inner".
// Afterwards the step has no functions.
//
//   Call    arguments are the values that are passed
//
//   If      x --> Switch --when_true--> nodes of `then` --> Merge --> the readers of the result
//                     '----when_false-> nodes of `else` ----^
//
//   Case    the same with SwitchN
//
//   While   nodes of `cond` --> _LoopBody --> nodes of `body`, of `cond` again --> _LoopNext
//           (graph/control/lowering/frames.hpp); readers of the results read _LoopNext
//
// A node of a branch without an input from a Switch, such as a constant or a read, gets a control
// edge from the branch's pivot, so that it is dead if the branch is not taken. Effects (writes,
// queues, files, Print, Assert) are needed if the call is. Nodes after a call come after a Merge of
// its branches' last nodes, which is not dead.
//
// Recursive functions stay functions (graph/control/functions/recursion.hpp).
//
// resource_exhausted names a function that becomes too large.
Status lower(StepGraph& step, const Target& target);

}  // namespace troupe
