// Variables in loops: from effects to values.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// Afterwards no loop reads or writes a variable: what it has of one comes in as a value, what it
// makes of one goes out as a value, and is written behind it.
//
//   while (i < n) { v += x }     value = read v;  wrote = false
//                                while (i < n) { value = value + x;  wrote = true }
//                                if (wrote) v = value
//
// Of a variable that the loop writes the value is one more variable of the loop; a rule is applied
// to it there by the op "_Rule" (ops/kernels/state/update.hpp). Branches and calls in the body take
// it as an argument and return it. A read sees what the writes before it in its body left, before
// it by data or control, or else what the body began with. Those of a loop that only reads get the
// value from before the loop.
//
// The variable is asked before the loop only where something in the loop looks at what it finds
// there; then only once an iteration is to come, which lower does: it is given the handle for the
// value. Among the nodes around it the loop is one that reads and writes: it comes after the
// writes before it, and what uses the variable behind it comes after that write.
//
// Elements of a dataset are state, too: how many of them the run has taken so far is one more
// variable of the loop, which begins with those taken outside of loops and in the loop before it.
//
// Functions become other functions, of names with "@"; names of nodes in them stay, so that
// gradients find their values.
Status thread_state(StepGraph& step, const Target& target);

}  // namespace troupe
