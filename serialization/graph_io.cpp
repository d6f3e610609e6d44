#include "serialization/graph_io.hpp"

#include "serialization/detail/graph.hpp"
#include "serialization/detail/sha256.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t kMaxGraphFile = std::uint64_t{64} << 30;

std::vector<std::byte> bytes_of(const GraphDef& graph) {
  return detail::build<schema::Graph>(
      [&](schema::Graph::Builder out) { detail::write(out, graph); });
}

}  // namespace

Status write_graph(const std::string& path, const GraphDef& graph, FileSystem& files) {
  auto bytes = bytes_of(graph);
  return write_file(files, path, [&](WritableFile& file) { return file.append(bytes); });
}

Expected<GraphDef> read_graph(const std::string& path, FileSystem& files) {
  TROUPE_TRY(auto bytes, read_file(files, place_to_read(files, path), kMaxGraphFile));
  auto graph = detail::parse<schema::Graph>(
      bytes, [](schema::Graph::Reader in) { return detail::read(in); });
  if (!graph.ok()) return data_loss("'" + path + "' is no graph: " + graph.status().text());
  return graph;
}

std::string graph_sha256(const GraphDef& graph) {
  GraphDef bare = graph;
  for (NodeDef& node : bare.nodes) node.site = {};
  for (FunctionDef& function : bare.functions) {
    function.site = {};
    for (NodeDef& node : function.nodes) node.site = {};
  }
  auto bytes = bytes_of(bare);
  detail::Sha256 sha;
  sha.bytes(bytes.data(), bytes.size());
  return sha.hex();
}

}  // namespace troupe
