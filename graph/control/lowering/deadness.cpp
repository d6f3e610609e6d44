#include "graph/control/lowering/deadness.hpp"

namespace troupe {
namespace {

std::vector<bool> find(const std::vector<NodeDef>& nodes, const OpRegistry& ops,
                       bool through_merges) {
  std::vector<bool> dead(nodes.size(), false), is_switch(nodes.size(), false);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const NodeDef& node = nodes[id];
    const Role role = role_of(node, ops);
    is_switch[id] = role == Role::switch_ || role == Role::kept;
    if (role == Role::control_trigger) continue;
    if (role == Role::merge && !through_merges) {
      dead[id] = node.attrs.contains(kConditionalAttr);
      continue;
    }
    bool any = false;
    for (Port in : node.inputs) {
      any = any || (in.node < id && (dead[in.node] || is_switch[in.node]));
      if (role == Role::keep) break;  // what it pushes may be dead
    }
    for (NodeId c : node.control) any = any || dead[c];
    dead[id] = any;
  }
  return dead;
}

}  // namespace

std::vector<bool> maybe_dead_nodes(const std::vector<NodeDef>& nodes, const OpRegistry& ops) {
  return find(nodes, ops, false);
}
std::vector<bool> nodes_with_dead_outputs(const std::vector<NodeDef>& nodes,
                                          const OpRegistry& ops) {
  std::vector<bool> dying = find(nodes, ops, false);
  for (NodeId id = 0; id < nodes.size(); ++id)
    dying[id] = dying[id] || role_of(nodes[id], ops) == Role::switch_;
  return dying;
}
std::vector<bool> maybe_dead_past_merges(const std::vector<NodeDef>& nodes, const OpRegistry& ops) {
  return find(nodes, ops, true);
}

}  // namespace troupe
