// Names, ops and attributes of state that goes through loops as a value.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// The name of the function that a function was made of: without "@" and what follows.
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
