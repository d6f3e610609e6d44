// Functions that run in loops: what they read and write of variables becomes arguments and results.
#pragma once

#include <string>
#include <vector>

#include "graph/control/state/detail/state_threading.hpp"

namespace troupe::detail {

// The function of the name that `out` has: `f` with `in` as arguments and results. `bound`: the
// resources of its arguments. Adds to `out` what the function does with the values that it takes.
// unimplemented, naming a node, for what a loop cannot do with state.
Expected<FunctionDef> thread_body(StateThreading& all, const FunctionDef& f,
                                  const std::vector<std::string>& bound, const StateInLoop& in,
                                  ThreadedFunction& out);

}  // namespace troupe::detail
