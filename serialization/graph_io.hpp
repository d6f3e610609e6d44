// A graph in a file. All numbers are little-endian:
//   0  "TRGRAPH1"
//   8  u64  N, bytes of the message
//  16  u32  CRC32C of the message
//  20  u32  CRC32C of bytes 0 to 19
//  24  N bytes: one Cap'n Proto message of schema/graph.capnp
// Files of earlier versions are the message alone.
#pragma once

#include <string>

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "serialization/file.hpp"

namespace troupe {

// Writes the file atomically. REQUIRES: constants in host memory.
Status write_graph(const std::string& path, const GraphDef& graph, FileSystem& files = disk());

// data_loss if the file is not a graph, or is damaged. Only import_graph() checks the meaning of
// the graph.
Expected<GraphDef> read_graph(const std::string& path, FileSystem& files = disk());

// SHA-256 of the graph in lower-case hexadecimal, without the source locations of its nodes.
std::string graph_sha256(const GraphDef& graph);

}  // namespace troupe
