// A graph in a file: one Cap'n Proto message of schema/graph.capnp.
#pragma once

#include <string>

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "serialization/file.hpp"

namespace troupe {

// Writes the file atomically. REQUIRES: constants in host memory.
Status write_graph(const std::string& path, const GraphDef& graph, FileSystem& files = disk());

// data_loss if the file is not a graph. Only import_graph() checks the meaning of the graph.
Expected<GraphDef> read_graph(const std::string& path, FileSystem& files = disk());

// SHA-256 of the graph in lower-case hexadecimal, without the source locations of its nodes.
std::string graph_sha256(const GraphDef& graph);

}  // namespace troupe
