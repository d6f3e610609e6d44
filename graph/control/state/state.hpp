// Turns the state that loops read and write into values.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// Afterwards no loop reads or writes a variable: its value enters the loop, the new value leaves
// it, and is written after the loop.
//
//   while (i < n) { v += x }     value = read v;  wrote = false
//                                while (i < n) { value = value + x;  wrote = true }
//                                if (wrote) v = value
//
// The value of a variable that the loop writes becomes a loop variable; the op "_Rule" applies a
// rule to it (ops/kernels/state/update.hpp). Branches and calls in the body take it as an argument
// and return it. A read sees the writes before it in its body, by data or control, or else the
// value at the body's begin. In a loop that only reads a variable, it is an invariant.
//
// The variable is read before the loop only if its first value is used; and only if there is an
// iteration, for which lower gets the handle instead of the value. For the nodes around it, the
// loop is one node that reads and writes: it comes after earlier writes, and later uses of the
// variable come after its write.
//
// Dataset elements are state, too: the number of elements taken by the run so far is a loop
// variable, which begins with those taken outside loops and in earlier loops.
//
// Changed functions get new names with "@"; the names of their nodes stay, so that gradients find
// their values.
Status thread_state(StepGraph& step, const Target& target);

}  // namespace troupe
