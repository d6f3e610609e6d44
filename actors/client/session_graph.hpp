// The graph behind a session, for who shows it.
#pragma once

#include <memory>

#include "graph/graph.hpp"

namespace troupe::detail {

struct SessionCore;

// A copy of the graph as it is now; empty if it is gone. Waits for compiles that read it.
std::shared_ptr<const GraphDef> graph_of(SessionCore& core);

}  // namespace troupe::detail
