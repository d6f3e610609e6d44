#include "graph/passes/pass.hpp"

namespace troupe {

NodeId Rewriter::append(NodeDef node) {
  sort_control(node);
  out_.nodes.push_back(std::move(node));
  return NodeId(out_.nodes.size() - 1);
}

NodeId Rewriter::keep(NodeId id) {
  NodeDef node = std::move(step_.graph.nodes[id]);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    Port& in = node.inputs[i];
    if (in.node >= id && !has(in.node))
      late_.emplace_back(NodeId(out_.nodes.size()), i);  // a back edge: its number comes later
    else
      in = port(in);
  }
  for (NodeId& c : node.control) c = this->node(c);
  NodeId made = append(std::move(node));
  map(id, made);
  return made;
}

void Rewriter::add_control(NodeId new_id, const std::vector<NodeId>& control) {
  NodeDef& node = out_.nodes[new_id];
  node.control.insert(node.control.end(), control.begin(), control.end());
  sort_control(node);
}

void Rewriter::map(NodeId old_id, NodeId new_id) { nodes_[old_id] = new_id; }

void Rewriter::map_port(Port old_port, Port new_port) {
  auto& ports = ports_[old_port.node];
  if (ports.size() <= old_port.index) ports.resize(old_port.index + 1);
  ports[old_port.index] = new_port;
}

Port Rewriter::port(Port old_port) const {
  const auto& ports = ports_[old_port.node];
  if (old_port.index < ports.size() && ports[old_port.index].node != kNoNode)
    return ports[old_port.index];
  TROUPE_CHECK(nodes_[old_port.node] != kNoNode, "a port of a node that was left out is used");
  return {nodes_[old_port.node], old_port.index};
}

void Rewriter::finish() {
  for (auto [id, i] : late_) out_.nodes[id].inputs[i] = port(out_.nodes[id].inputs[i]);
  for (Port& fetch : step_.fetches) fetch = port(fetch);
  for (NodeId& target : step_.targets) {
    TROUPE_CHECK(nodes_[target] != kNoNode, "a target was left out");
    target = nodes_[target];
  }
  out_.seed = step_.graph.seed;
  out_.functions = std::move(step_.graph.functions);
  step_.graph = std::move(out_);
}

}  // namespace troupe
