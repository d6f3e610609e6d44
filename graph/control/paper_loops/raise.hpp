// From the loops that a client writes in the paper's words (section 4.4) to While.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// Puts a While in the place of every cycle, in the step and in its functions; afterwards no node
// has a back edge. What is behind the Enters of one name, up to the Leaves, is a loop:
//
//   x --> Enter --> Merge -----> Switch --when_false--> Leave --> the last value
//                   ^   |        ^    '---when_true--> body --> NextIteration --.
//                   |   '-> condition --> LoopCond                              |
//                   '-----------------------------------------------------------'
//
// It has one LoopCond, the predicate of its Switches, and a Merge of an Enter and a NextIteration
// for each variable. What does not need what the Switches let through is the condition, and is
// done once more than the rest. Where the body uses a value that the condition made, or the
// condition writes variables, the condition becomes a function of its own, which is called before
// the loop and at the end of the body; its values are variables of the While.
//
// All that a node of a loop takes is of the same iteration of the same loop. What is the same in
// each comes in by an Enter with `is_constant`, but for handles and constants, which may be used as
// they are. Loops stand in loops, in branches, and beside each other.
//
// invalid_argument for any other cycle: it names the nodes with their lines.
Status raise_loops(StepGraph& step, const Target& target);

}  // namespace troupe
