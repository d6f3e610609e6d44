// From names to ports: fed ports become feed nodes, fetches and targets are looked up.
#include <set>
#include <unordered_map>

#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

// Looks names of a request up, with errors that help.
class Names {
 public:
  explicit Names(const GraphDef& graph) : graph_(graph) {
    ids_.reserve(graph.nodes.size());
    for (NodeId id = 0; id < graph.nodes.size(); ++id) ids_.emplace(graph.nodes[id].name, id);
  }

  Expected<NodeId> node(std::string_view what, const std::string& name) const {
    auto at = ids_.find(name);
    if (at != ids_.end()) return at->second;
    std::vector<std::string> known;
    for (const NodeDef& n : graph_.nodes) known.push_back(n.name);
    std::string near;
    for (const std::string& n : near_names(name, known)) near += (near.empty() ? "" : ", ") + n;
    return not_found(std::string(what) + " '" + name + "': the graph has no such node" +
                     (near.empty() ? "" : "; near names: " + near));
  }

  Expected<Port> port(std::string_view what, const PortName& name) const {
    const std::string text = std::string(what) + " '" + name.text() + "'";
    if (name.control) return invalid_argument(text + " is a control edge, not a tensor");
    TROUPE_TRY(NodeId id, node(what, name.node));
    const NodeDef& n = graph_.nodes[id];
    if (n.out_types.empty())
      return in_node(invalid_argument(text + ": the node has no outputs; name it as a target"), n);
    if (name.port < 0 || std::size_t(name.port) >= n.out_types.size())
      return in_node(invalid_argument(text + ": the node has " +
                                      std::to_string(n.out_types.size()) + " output(s)"),
                     n);
    if (n.out_types[std::size_t(name.port)] == DType::resource)
      return in_node(invalid_argument(text + " is a handle, which has no value of its own"), n);
    if (n.out_types[std::size_t(name.port)] == DType::list)
      return in_node(invalid_argument(text + " is a list, which is neither fed nor fetched; "
                                             "ListStack makes a tensor of it"),
                     n);
    return Port{id, std::uint32_t(name.port)};
  }

 private:
  const GraphDef& graph_;
  std::unordered_map<std::string_view, NodeId> ids_;
};

NodeDef feed_node(const NodeDef& source, Port port, const PortName& name, std::size_t feed) {
  NodeDef node;
  node.name = "_feed/" + name.text();
  node.op = std::string(kFeedOp);
  node.attrs.emplace("feed", Attr(std::int64_t(feed)));
  node.site = source.site;
  node.out_types = {source.out_types[port.index]};
  node.out_shapes = {source.out_shapes[port.index]};
  return node;
}

// Handles are not executed, so nothing waits for them and they wait for nothing.
void drop_control_of_handles(GraphDef& graph, const std::vector<bool>& gone) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    auto& control = graph.nodes[id].control;
    if (gone[id]) control.clear();
    std::erase_if(control, [&](NodeId c) { return gone[c]; });
  }
}

}  // namespace

Expected<StepGraph> feed_and_fetch(const GraphDef& graph, const CompileRequest& request,
                                   const OpRegistry& ops) {
  if (request.fetches.empty() && request.targets.empty())
    return invalid_argument("nothing to run: the request has neither a fetch nor a target");
  Names names(graph);
  StepGraph step;
  step.graph = graph;
  step.replicas = request.replicas;
  auto& nodes = step.graph.nodes;

  std::vector<Port> feeds;
  std::set<Port> fed_ports;
  std::vector<NodeDef> made;
  for (const PortName& name : request.feeds) {
    TROUPE_TRY(Port port, names.port("feed", name));
    if (!fed_ports.insert(port).second)
      return invalid_argument("'" + name.text() + "' is fed more than once");
    made.push_back(feed_node(nodes[port.node], port, name, feeds.size()));
    feeds.push_back(port);
  }
  for (const PortName& name : request.fetches) {
    TROUPE_TRY(Port port, names.port("fetch", name));
    if (fed_ports.contains(port))
      return invalid_argument("'" + name.text() + "' is both fed and fetched");
    step.fetches.push_back(port);
  }
  for (const std::string& name : request.targets) {
    TROUPE_TRY(NodeId id, names.node("target", name));
    step.targets.push_back(id);
  }

  // A fed placeholder is there from the start: what waits for it waits for nothing.
  std::vector<bool> no_control(nodes.size(), false);
  for (NodeId id = 0; id < nodes.size(); ++id) no_control[id] = is_handle(role_of(nodes[id], ops));
  for (Port feed : feeds)
    if (role_of(nodes[feed.node], ops) == Role::placeholder) no_control[feed.node] = true;
  drop_control_of_handles(step.graph, no_control);

  // A target that is a handle or a fed placeholder asks for nothing.
  std::erase_if(step.targets, [&](NodeId id) { return bool(no_control[id]); });

  // Feeds come first: then an input still names an earlier node.
  Rewriter out(step);
  std::vector<NodeId> fed(feeds.size());
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    fed[i] = out.append(std::move(made[i]));
    out.map_port(feeds[i], {fed[i], 0});
  }
  for (NodeId id = 0; id < nodes.size(); ++id) out.keep(id);
  out.finish();
  return step;
}

}  // namespace troupe
