// A graph to and from schema/graph.capnp.
#pragma once

#include "graph/graph.hpp"
#include "serialization/detail/capnp.hpp"
#include "serialization/schema/graph.capnp.h"

namespace troupe::detail {

void write(schema::Graph::Builder out, const GraphDef& graph);
// Well-formed as data; what it means is import_graph's to check.
Expected<GraphDef> read(schema::Graph::Reader in);

}  // namespace troupe::detail
