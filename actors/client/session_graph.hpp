// The graph of a session, for displaying it.
#pragma once

#include <memory>

#include "graph/graph.hpp"

namespace troupe::detail {

struct SessionCore;

// A copy of the current graph; empty if the graph is gone. Waits for compiles that read it.
std::shared_ptr<const GraphDef> graph_of(SessionCore& core);

}  // namespace troupe::detail
