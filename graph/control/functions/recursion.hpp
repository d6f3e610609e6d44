// Finds recursive functions, and whether they run on one device.
//
// Lowering does not inline them, but makes a copy for each call from outside:
//
//   x --> _FunctionBody --> nodes --> _Invoke --> nodes --> _FunctionReturn --> the call's results
//              (f)                 (calls f or g)                 ^
//               '-----> _FunctionBody --> nodes --> _FunctionReturn
//              control       (g)
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/node_query.hpp"

namespace troupe {

// Properties of the functions of a graph, by function.
struct Recursion {
  std::vector<bool> calls_itself;        // directly or through functions, branches and loops
  std::vector<bool> has_effects;         // it, or a function that it calls, has effects
  std::vector<bool> stays_in_place;      // it, and functions that it calls, compute on one device
  std::vector<std::size_t> inner_first;  // functions after those that they call
  std::vector<std::size_t> depth;  // of calls in it; those that call each other count once each
};
Recursion find_recursion(const std::vector<FunctionDef>& functions, const OpRegistry& ops);

// resource_exhausted, with the function, if calls are more than 1,000 deep: passes that go down
// into them would overflow the stack.
Status check_call_depth(const std::vector<FunctionDef>& functions, const OpRegistry& ops);

// Whether a run of the op has an effect besides its results.
bool has_effect(const OpDef& op);

}  // namespace troupe
