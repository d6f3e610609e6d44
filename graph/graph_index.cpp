#include "graph/graph_index.hpp"

#include <unordered_set>

#include "graph/detail/back_edge.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

// Contracts that the stages rely on; import_graph tells more, and earlier. Names aside.
Status check_node(const std::vector<NodeDef>& nodes, NodeId id, const OpRegistry& ops) {
  const NodeDef& node = nodes[id];
  TROUPE_TRY(ops.lookup(node.op).status());
  if (node.out_types.size() != node.out_shapes.size())
    return invalid_argument("as many shapes as dtypes are wanted");
  for (Port in : node.inputs) {
    const bool known = in.node < nodes.size() && in.index < nodes[in.node].out_types.size();
    if (!known || (in.node >= id && !detail::is_back_edge(nodes[in.node], node, ops)))
      return invalid_argument("an input names no output of an earlier node");
  }
  for (NodeId c : node.control)
    if (c >= id) return invalid_argument("a control input names no earlier node");
  return ok_status();
}

Status same_name() { return invalid_argument("two nodes have this name"); }

Status check_body(const FunctionDef& f, const OpRegistry& ops) {
  std::unordered_set<std::string_view> names;
  names.reserve(f.nodes.size());
  for (NodeId id = 0; id < f.nodes.size(); ++id) {
    if (Status s = check_node(f.nodes, id, ops); !s.ok()) return in_node(s, f.nodes[id]);
    if (!names.insert(f.nodes[id].name).second) return in_node(same_name(), f.nodes[id]);
  }
  for (NodeId argument : f.arguments)
    if (argument >= f.nodes.size() || f.nodes[argument].out_types.size() != 1)
      return invalid_argument("an argument is no node of one output");
  for (Port result : f.results)
    if (result.node >= f.nodes.size() || result.index >= f.nodes[result.node].out_types.size())
      return invalid_argument("a result names no output of a node");
  return ok_status();
}

}  // namespace

Status GraphIndex::extend(const GraphDef& graph, const OpRegistry& ops) {
  if (!status_.ok()) return status_;
  status_ = check_nodes(graph, ops);
  for (std::size_t i = functions_.size(); status_.ok() && i < graph.functions.size(); ++i) {
    const FunctionDef& f = graph.functions[i];
    status_ = check_body(f, ops);
    if (!functions_.emplace(f.name, i).second && status_.ok())
      status_ = invalid_argument("two functions have this name");
    if (!status_.ok()) status_ = status_.in("in function '" + f.name + "'");
  }
  return status_;
}

Status GraphIndex::check_nodes(const GraphDef& graph, const OpRegistry& ops) {
  for (auto id = NodeId(nodes_.size()); id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    if (Status s = check_node(graph.nodes, id, ops); !s.ok()) return in_node(s, node);
    if (!nodes_.emplace(node.name, id).second) return in_node(same_name(), node);
  }
  return ok_status();
}

NodeId GraphIndex::find(std::string_view node) const {
  auto at = nodes_.find(node);
  return at == nodes_.end() ? kNoNode : at->second;
}

std::size_t GraphIndex::function(std::string_view name) const {
  auto at = functions_.find(name);
  return at == functions_.end() ? functions_.size() : at->second;
}

}  // namespace troupe
