// Turns client loops made of the paper's primitives (section 4.4) into While.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// Replaces every cycle, in the step and in its functions, by a While; afterwards no node has a back
// edge. The nodes from the Enters with one name to the Leaves are a loop:
//
//   x --> Enter --> Merge -----> Switch --when_false--> Leave --> the last value
//                   ^   |        ^    '---when_true--> body --> NextIteration --.
//                   |   '-> condition --> LoopCond                              |
//                   '-----------------------------------------------------------'
//
// It has one LoopCond, the predicate of its Switches, and for each variable a Merge of an Enter and
// a NextIteration. Nodes that do not depend on the Switches are the condition, and run once more
// than the rest. If the body uses a value of the condition, or the condition writes variables, the
// condition becomes a function that is called before the loop and at the end of the body; its
// values are variables of the While.
//
// All inputs of a node of a loop are from the same iteration of the same loop. Invariants enter
// through an Enter with `is_constant`; handles and constants may be used directly. Loops may be in
// loops, in branches, and side by side.
//
// invalid_argument for any other cycle, naming its nodes with their lines.
Status raise_loops(StepGraph& step, const Target& target);

}  // namespace troupe
