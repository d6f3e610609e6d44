// Variables in loops: from effects to values.
#pragma once

#include <string_view>

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

// The name without that.
inline std::string_view original_function(std::string_view name) {
  return name.substr(0, name.find('@'));
}

// The op that does to values what that write does to variables: its inputs are some of the write's,
// by their names, values for handles.
inline std::string rule_on_values(std::string_view write) { return "_" + std::string(write); }

// NextElement in a loop: the loop counts the elements that it has taken, and asks for the one
// behind them. What counts.
inline constexpr std::string_view kElementAtOp = "_ElementAt";
inline constexpr std::string_view kNextCountOp = "_NextElement";

// Attribute of reads and writes that are made for a loop: they are where the variable is, whatever
// the call around them says.
inline constexpr std::string_view kAtVariableAttr = "_at_variable";

// Attribute of a write that stands behind a loop for those in it.
inline constexpr std::string_view kBehindLoopAttr = "_behind_loop";

}  // namespace troupe
