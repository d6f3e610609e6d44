// Rows that are looked up in a variable.
#pragma once

#include "graph/graph.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// The read of a variable from which `node` picks rows, if these are smaller than the variable: they
// are picked on its device, and only they are sent to another one. Else kNoNode. Rows of unknown
// number count as smaller if the variable has 65,536 elements or more.
NodeId picks_rows_of(const GraphDef& graph, const NodeDef& node, const OpRegistry& ops);

}  // namespace troupe
