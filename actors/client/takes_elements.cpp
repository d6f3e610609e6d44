#include "actors/client/takes_elements.hpp"

#include <algorithm>

namespace troupe {
namespace {

bool takes(const GraphBuilder& graph, const NodeDef& node) {
  const OpInfo* op = graph.registry().find(node.op);
  if (!op) return false;
  const External& external = op->def.external;
  // What sees what it changes conflicts with others of the kind, and is done in the order of
  // commits.
  return external.changes && !external.fills && !external.sees && external.resource != "variable" &&
         external.resource != "mutex";
}

bool calls(const GraphBuilder& graph, const NodeDef& node) {
  const OpInfo* op = graph.registry().find(node.op);
  return op && op->def.role == Role::call;
}

}  // namespace

bool takes_elements(const GraphBuilder& graph, std::vector<NodeId> nodes) {
  const GraphDef& def = graph.def();
  const bool in_function =
      std::any_of(def.functions.begin(), def.functions.end(), [&](const FunctionDef& function) {
        return std::any_of(function.nodes.begin(), function.nodes.end(),
                           [&](const NodeDef& node) { return takes(graph, node); });
      });
  std::vector<bool> seen(def.nodes.size());
  while (!nodes.empty()) {
    const NodeId id = nodes.back();
    nodes.pop_back();
    if (id >= seen.size() || seen[id]) continue;
    seen[id] = true;
    const NodeDef& node = def.nodes[id];
    if (takes(graph, node) || (in_function && calls(graph, node))) return true;
    for (const Port in : node.inputs) nodes.push_back(in.node);
    nodes.insert(nodes.end(), node.control.begin(), node.control.end());
  }
  return false;
}

}  // namespace troupe
