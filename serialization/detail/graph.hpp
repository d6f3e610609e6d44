// A graph to and from schema/graph.capnp.
#pragma once

#include "serialization/schema/graph.capnp.h"
#include "troupe/graph/graph.hpp"
#include "troupe/serialization/detail/capnp.hpp"

namespace troupe::detail {

void write(schema::Graph::Builder out, const GraphDef& graph);
// Well-formed as data; what it means is import_graph's to check.
Expected<GraphDef> read(schema::Graph::Reader in);

}  // namespace troupe::detail
