#include "graph/control/functions/node_copies.hpp"

#include "graph/node_query.hpp"

namespace troupe::detail {

void NodeCopies::reserve_names() {
  made_.reserve(from_.size());
  for (const NodeDef& node : from_) names_.insert(node.name);
}

NodeId NodeCopies::append(NodeDef node) {
  node.name = names_.take(node.name);
  sort_control(node);
  made_.push_back(std::move(node));
  return NodeId(made_.size() - 1);
}

NodeDef NodeCopies::moved(NodeId id) const {
  NodeDef node = from_[id];
  for (Port& in : node.inputs) in = port(in);
  for (NodeId& c : node.control) c = this->node(c);
  return node;
}

NodeId NodeCopies::replace(NodeId id, NodeDef node) {
  names_.erase(from_[id].name);
  const NodeId made = append(std::move(node));
  map(id, made);
  return made;
}

NodeId NodeCopies::node(NodeId id) const {
  const auto at = nodes_.find(id);
  return at == nodes_.end() ? kNoNode : at->second;
}

Port NodeCopies::port(Port from) const {
  const auto at = ports_.find(from);
  return at == ports_.end() ? Port{node(from.node), from.index} : at->second;
}

std::vector<NodeId> NodeCopies::nodes(const std::vector<NodeId>& some) const {
  std::vector<NodeId> out;
  for (NodeId id : some)
    if (const NodeId made = node(id); made != kNoNode) out.push_back(made);
  return out;
}

}  // namespace troupe::detail
