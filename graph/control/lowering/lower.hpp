// From calls of functions to plain nodes, in the paper's words (section 4.4).
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// Replaces every node of role `call` by the nodes of its functions, named "callsite/inner". After
// it a step has no functions.
//
//   Call    arguments are the values that are passed
//
//   If      x --> Switch --when_true--> nodes of `then` --> Merge --> the readers of the result
//                     '----when_false-> nodes of `else` ----^
//
//   Case    the same with SwitchN
//
//   While   nodes of `cond` --> _LoopBody --> nodes of `body`, of `cond` again --> _LoopNext
//           (graph/control/lowering/frames.hpp); the readers of the results take those of _LoopNext
//
// A node of a branch that takes nothing from a Switch, say a constant or a read, has a control edge
// from the branch's pivot, so that it is dead where the branch is not taken. Effects (writes,
// queues, files, Print, Assert) are needed where the call is. What comes after a call comes after a
// Merge of its branches' last nodes, which is not dead.
//
// Functions that call themselves stay functions (graph/control/functions/recursion.hpp).
//
// resource_exhausted names a function that becomes too large.
Status lower(StepGraph& step, const Target& target);

}  // namespace troupe
