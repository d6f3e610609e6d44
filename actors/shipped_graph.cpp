#include "actors/shipped_graph.hpp"

#include <unordered_map>

namespace troupe {

NodeId ShippedGraph::shipped(NodeId of_client) const {
  std::size_t number = of_client;
  for (const Own& own : insertions_)
    if (own.after <= of_client) number += own.nodes.size();
  return NodeId(number);
}

std::shared_ptr<const GraphDef> ShippedGraph::snapshot() const {
  if (insertions_.empty()) return graph_.snapshot();
  const GraphDef& client = graph_.def();
  auto out = std::make_shared<GraphDef>();
  out->seed = client.seed;
  out->nodes.reserve(size());
  auto own = insertions_.begin();
  for (NodeId id = 0; id <= client.nodes.size(); ++id) {
    for (; own != insertions_.end() && own->after == id; ++own)
      out->nodes.insert(out->nodes.end(), own->nodes.begin(), own->nodes.end());
    if (id == client.nodes.size()) break;
    NodeDef node = client.nodes[id];
    for (Port& input : node.inputs) input.node = shipped(input.node);
    for (NodeId& control : node.control) control = shipped(control);
    out->nodes.push_back(std::move(node));
  }
  return out;
}

Expected<CompileRequest> ShippedGraph::add_assignments(
    const std::vector<std::pair<std::string, Tensor>>& values) {
  std::unordered_map<std::string_view, NodeId> variables;
  const auto& nodes = graph_.def().nodes;
  for (NodeId id = 0; id < nodes.size(); ++id)
    if (nodes[id].op == "Variable") variables.emplace(nodes[id].name, id);

  // Checked and completed beside the client's graph, then moved in among its nodes.
  GraphBuilder beside(graph_.registry(), graph_.def().seed);
  CompileRequest request;
  Own own{NodeId(nodes.size()), {}};
  // A name that begins with a dot is none that a program chooses.
  const std::string prefix = ".restore" + std::to_string(insertions_.size()) + "/";
  for (const auto& [name, value] : values) {
    auto found = variables.find(name);
    if (found == variables.end()) return not_found("the graph has no variable '" + name + "'");
    const NodeDef& variable = nodes[found->second];
    TROUPE_TRY(Op handle, beside.try_add({.op = "Variable", .attrs = variable.attrs}));
    TROUPE_TRY(Op fed, beside.try_add({.op = "Placeholder",
                                       .attrs = {{"T", value.dtype()}, {"shape", value.shape()}}}));
    TROUPE_TRY(Op assign,
               beside.try_add({.op = "Assign", .inputs = {handle.output(), fed.output()}}));
    NodeDef feed = beside.node(fed.node()), write = beside.node(assign.node());
    feed.name = prefix + name + "/value";
    write.name = prefix + name;
    write.inputs = {{shipped(found->second), 0}, {NodeId(size() + own.nodes.size()), 0}};
    feed.site = write.site = variable.site;
    request.feeds.push_back({feed.name, 0, false});
    request.targets.push_back(write.name);
    own.nodes.push_back(std::move(feed));
    own.nodes.push_back(std::move(write));
  }
  own_ += own.nodes.size();
  insertions_.push_back(std::move(own));
  return request;
}

}  // namespace troupe
