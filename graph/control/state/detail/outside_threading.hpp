// Around loops: the values that they begin with, and the writes behind them.
#pragma once

#include <vector>

#include "graph/control/functions/node_copies.hpp"
#include "graph/control/state/detail/state_threading.hpp"

namespace troupe::detail {

// Copies nodes that are outside of all loops to `out`: those of a step, or of a function that is
// called or a branch. Their loops take the state that they use as values, and what a loop made of a
// variable is written behind it. `keys`: of those nodes. unimplemented, naming a node, for what a
// loop cannot do with state.
Status thread_outside(StateThreading& all, const std::vector<NodeDef>& nodes, const Keys& keys,
                      NodeCopies& out);

}  // namespace troupe::detail
