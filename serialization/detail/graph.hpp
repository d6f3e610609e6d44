// Converts a graph to and from schema/graph.capnp.
#pragma once

#include "graph/graph.hpp"
#include "serialization/detail/capnp.hpp"
#include "serialization/schema/graph.capnp.h"

namespace troupe::detail {

void write(schema::Graph::Builder out, const GraphDef& graph);
// Checks only the encoding; import_graph() checks the meaning.
Expected<GraphDef> read(schema::Graph::Reader in);

}  // namespace troupe::detail
