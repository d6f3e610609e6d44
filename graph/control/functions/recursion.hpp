// Functions that call themselves: which they are, and where they run.
//
// Lowering leaves them as they are, once for each call from outside:
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

// By function of a graph.
struct Recursion {
  std::vector<bool> calls_itself;  // or is called by one that it calls; by branches and loops, too
  std::vector<bool> has_effects;   // in a run, of its own or of what it calls
  std::vector<bool> stays_in_place;  // its nodes, and those of what it calls, compute on one device
  std::vector<std::size_t> inner_first;  // functions behind those that they call
};
Recursion find_recursion(const std::vector<FunctionDef>& functions, const OpRegistry& ops);

// What a function is run for, beside its results.
bool has_effect(const OpDef& op);

}  // namespace troupe
