// Functions in loops: state that they read and write becomes arguments and results.
#pragma once

#include <string>
#include <vector>

#include "graph/control/state/detail/state_threading.hpp"

namespace troupe::detail {

// A function with the name in `out`: `f` with the state `in` as arguments and results. `bound`: the
// resources of its arguments. Adds to `out` how the function uses the values. unimplemented, naming
// a node, for unsupported uses of state in a loop.
Expected<FunctionDef> thread_body(StateThreading& all, const FunctionDef& f,
                                  const std::vector<std::string>& bound, const StateInLoop& in,
                                  ThreadedFunction& out);

}  // namespace troupe::detail
