// A graph in a file: one Cap'n Proto message of schema/graph.capnp.
#pragma once

#include <string>

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "serialization/file.hpp"

namespace troupe {

// The file is there as a whole or not at all. REQUIRES: constants in host memory.
Status write_graph(const std::string& path, const GraphDef& graph, FileSystem& files = disk());

// data_loss when the file is no graph. What it says is import_graph's to check.
Expected<GraphDef> read_graph(const std::string& path, FileSystem& files = disk());

// SHA-256 of the graph in lower-case hexadecimal: what it computes, not where in a source file its
// nodes were created.
std::string graph_sha256(const GraphDef& graph);

}  // namespace troupe
