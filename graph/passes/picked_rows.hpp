// Rows that are looked up in a variable.
#pragma once

#include "graph/graph.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// The read of a variable of which `node` picks rows, if these are less than the variable: they are
// picked where it is, and only they cross to another device. Else kNoNode. Rows whose number is not
// known are taken to be less than a variable of 65,536 elements or more.
NodeId picks_rows_of(const GraphDef& graph, const NodeDef& node, const OpRegistry& ops);

}  // namespace troupe
