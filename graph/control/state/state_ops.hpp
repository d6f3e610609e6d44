// Names, ops and attributes of state that loops carry as values.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// The name of the original function: without "@" and what follows.
inline std::string_view original_function(std::string_view name) {
  return name.substr(0, name.find('@'));
}

// The op that applies a write's rule to values: its inputs are some of the write's, by name, with
// values instead of handles.
inline std::string rule_on_values(std::string_view write) { return "_" + std::string(write); }

// Ops for NextElement in a loop: one returns the element after those counted so far, the other one
// counts.
inline constexpr std::string_view kElementAtOp = "_ElementAt";
inline constexpr std::string_view kNextCountOp = "_NextElement";

// Attribute of reads and writes made for a loop: they are placed with the variable, whatever the
// call around them requests.
inline constexpr std::string_view kAtVariableAttr = "_at_variable";

// Attribute of a write after a loop, which replaces the writes in it.
inline constexpr std::string_view kBehindLoopAttr = "_behind_loop";

}  // namespace troupe
