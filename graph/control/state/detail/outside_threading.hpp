// Nodes outside loops: the first values of loops, and the writes after them.
#pragma once

#include <vector>

#include "graph/control/functions/node_copies.hpp"
#include "graph/control/state/detail/state_threading.hpp"

namespace troupe::detail {

// Copies nodes outside all loops to `out`: those of a step, or of a called function or a branch.
// Their loops take their state as values, and new values of variables are written after them.
// `keys`: of those nodes. unimplemented, naming a node, for unsupported uses of state in a loop.
Status thread_outside(StateThreading& all, const std::vector<NodeDef>& nodes, const Keys& keys,
                      NodeCopies& out);

}  // namespace troupe::detail
