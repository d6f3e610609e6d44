#include "graph/graph_marks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/hash.hpp"
#include "graph/node_hash.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMarks = 64;       // of the nodes that came since
constexpr std::size_t kMostMarks = 256;  // of a graph that grows often

// A Merge whose loop is still open is known again once it is closed, and the other way round: only
// where its variable comes from counts.
std::uint64_t mark_node(std::uint64_t before, const std::vector<NodeDef>& nodes, NodeId id) {
  const auto enters = [&](Port in) { return nodes[in.node].op == "Enter"; };
  const NodeDef& node = nodes[id];
  if (node.op != "Merge" || std::none_of(node.inputs.begin(), node.inputs.end(), enters))
    return hash_nodes(before, node, Placing::ignored);
  NodeDef open = node;
  std::erase_if(open.inputs, [&](Port in) { return !enters(in); });
  std::sort(open.inputs.begin(), open.inputs.end());
  open.inputs.erase(std::unique(open.inputs.begin(), open.inputs.end()), open.inputs.end());
  return hash_nodes(before, open, Placing::ignored);
}

}  // namespace

const std::vector<GraphMark>& GraphMarks::of(const GraphDef& graph) {
  GraphMark mark = marks_.empty() ? GraphMark{} : marks_.back();
  for (; functions_ < graph.functions.size(); ++functions_)
    functions_hash_ =
        hash_functions(functions_hash_, graph.functions[functions_], Placing::ignored);
  const std::uint64_t all = graph.functions.size();
  const std::size_t each = std::max<std::size_t>(1, (graph.nodes.size() - mark.nodes) / kMarks);
  while (mark.nodes < graph.nodes.size()) {
    nodes_hash_ = mark_node(nodes_hash_, graph.nodes, NodeId(mark.nodes++));
    const bool last = mark.nodes == graph.nodes.size();
    if (!last && mark.nodes % each != 0) continue;
    mark.functions = last ? all : 0;
    mark.hash = mark.functions > 0 ? hash_combine(nodes_hash_, functions_hash_) : nodes_hash_;
    marks_.push_back(mark);
  }
  if (marks_.size() > kMostMarks) {  // every other one, and the last
    std::size_t kept = 0;
    for (std::size_t i = 0; i < marks_.size(); ++i)
      if (i % 2 == 0 || i + 1 == marks_.size()) marks_[kept++] = marks_[i];
    marks_.resize(kept);
  }
  return marks_;
}

Status check_marks(const GraphDef& graph, const std::vector<GraphMark>& marks) {
  std::uint64_t nodes_hash = 0, known = 0;
  std::uint64_t functions_hash = 0, functions = 0, at = 0;
  for (const GraphMark& mark : marks) {
    if (mark.nodes <= known) return invalid_argument("the marks of a graph do not ascend");
    if (mark.nodes > graph.nodes.size() || mark.functions > graph.functions.size()) break;
    for (; at < mark.nodes; ++at) nodes_hash = mark_node(nodes_hash, graph.nodes, NodeId(at));
    for (; functions < mark.functions; ++functions)
      functions_hash = hash_functions(functions_hash, graph.functions[functions], Placing::ignored);
    if (mark.hash != (mark.functions > 0 ? hash_combine(nodes_hash, functions_hash) : nodes_hash)) {
      const NodeDef& first = graph.nodes[known];
      return failed_precondition(fmt::format(
          "the graph is another one: of its nodes {} to {} one or more differ, the first "
          "of which is '{}' ({})",
          known, mark.nodes - 1, first.name, first.site.text()));
    }
    known = at;
  }
  return ok_status();
}

}  // namespace troupe
