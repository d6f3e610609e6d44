#include "graph/passes/feeds.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/control/functions/ops.hpp"
#include "graph/passes/fed_shapes.hpp"

namespace troupe {
namespace {

// Looks up the names of a request. Errors suggest similar names.
class Names {
 public:
  Names(const GraphDef& graph, const GraphIndex& index) : graph_(graph), index_(index) {}

  Expected<NodeId> node(std::string_view what, const std::string& name) const {
    if (const NodeId id = index_.find(name); id != kNoNode) return id;
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
  const GraphIndex& index_;
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

// The ports that a request names, and the nodes that replace fed ones.
struct Wanted {
  std::vector<Port> feeds, fetches;
  std::vector<NodeId> targets;
  std::vector<NodeDef> made;  // parallel to the feeds
};

Expected<Wanted> look_up(const GraphDef& graph, const GraphIndex& index,
                         const CompileRequest& request) {
  if (request.fetches.empty() && request.targets.empty())
    return invalid_argument("nothing to run: the request has neither a fetch nor a target");
  const Names names(graph, index);
  Wanted wanted;
  std::set<Port> fed_ports;
  for (const PortName& name : request.feeds) {
    TROUPE_TRY(Port port, names.port("feed", name));
    if (!fed_ports.insert(port).second)
      return invalid_argument("'" + name.text() + "' is fed more than once");
    wanted.made.push_back(feed_node(graph.nodes[port.node], port, name, wanted.feeds.size()));
    wanted.feeds.push_back(port);
  }
  for (const PortName& name : request.fetches) {
    TROUPE_TRY(Port port, names.port("fetch", name));
    if (fed_ports.contains(port))
      return invalid_argument("'" + name.text() + "' is both fed and fetched");
    wanted.fetches.push_back(port);
  }
  for (const std::string& name : request.targets) {
    TROUPE_TRY(NodeId id, names.node("target", name));
    wanted.targets.push_back(id);
  }
  return wanted;
}

// Copies a graph, or the part of it that a request needs, found backwards from fetches and targets.
class Taker {
 public:
  Taker(const GraphDef& graph, const GraphIndex& index, Wanted wanted, const OpRegistry& ops)
      : graph_(graph), index_(index), wanted_(std::move(wanted)), ops_(ops) {
    for (std::size_t i = 0; i < wanted_.feeds.size(); ++i) fed_[wanted_.feeds[i]] = i;
    for (Port feed : wanted_.feeds) fed_nodes_.insert(feed.node);
  }

  StepGraph take_all() {
    for (std::size_t feed = 0; feed < wanted_.feeds.size(); ++feed) needed_feeds_.insert(feed);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) numbers_.emplace(id, kNoNode);
    forget_empty_targets();
    StepGraph step = copied();
    step.graph.functions = graph_.functions;
    return step;
  }

  StepGraph take_needed() {
    for (Port fetch : wanted_.fetches) need(fetch);
    forget_empty_targets();
    for (NodeId id : wanted_.targets) need(id);
    while (!open_.empty()) {
      const NodeDef& node = graph_.nodes[open_.back()];
      const bool waits = !no_control(open_.back());
      open_.pop_back();
      for (Port in : node.inputs) need(in);
      if (!waits) continue;
      for (NodeId c : node.control)
        if (!no_control(c)) need(c);
    }
    StepGraph step = copied();
    copy_functions(step.graph);
    const std::size_t kept = step.graph.nodes.size();
    const std::size_t all = graph_.nodes.size() + wanted_.feeds.size();
    if (kept < all)
      step.notes.push_back("prune: kept " + std::to_string(kept) + " of " + std::to_string(all) +
                           " nodes");
    return step;
  }

 private:
  // Drops targets that are handles or fed placeholders: there is nothing to run.
  void forget_empty_targets() {
    std::erase_if(wanted_.targets, [&](NodeId id) { return no_control(id); });
  }
  // Copies the needed nodes, without functions.
  StepGraph copied() {
    number();
    StepGraph step;
    step.graph.seed = graph_.seed;
    copy_nodes(step.graph);
    for (Port fetch : wanted_.fetches) step.fetches.push_back(port(fetch));
    for (NodeId id : wanted_.targets) step.targets.push_back(numbers_.at(id));
    return step;
  }
  // Handles are not executed, so nothing waits for them and they wait for nothing. A fed
  // placeholder is available from the start.
  bool no_control(NodeId id) const {
    const Role role = role_of(graph_.nodes[id], ops_);
    return is_handle(role) || (role == Role::placeholder && fed_nodes_.contains(id));
  }
  void need(Port in) {
    if (auto fed = fed_.find(in); fed != fed_.end())
      needed_feeds_.insert(fed->second);
    else
      need(in.node);
  }
  void need(NodeId id) {
    if (numbers_.try_emplace(id, kNoNode).second) open_.push_back(id);
  }

  // Feeds come first, so that every input still names an earlier node.
  void number() {
    NodeId next = 0;
    for (std::size_t feed : needed_feeds_) feed_numbers_[feed] = next++;
    for (const auto& [id, number] : numbers_) order_.push_back(id);
    std::sort(order_.begin(), order_.end());
    for (NodeId id : order_) numbers_[id] = next++;
  }
  Port port(Port in) const {
    if (auto fed = fed_.find(in); fed != fed_.end()) return {feed_numbers_.at(fed->second), 0};
    return {numbers_.at(in.node), in.index};
  }

  void copy_nodes(GraphDef& out) {
    out.nodes.reserve(needed_feeds_.size() + order_.size());
    for (std::size_t feed : needed_feeds_) out.nodes.push_back(std::move(wanted_.made[feed]));
    for (NodeId id : order_) {
      NodeDef node = graph_.nodes[id];
      for (Port& in : node.inputs) in = port(in);
      if (no_control(id)) node.control.clear();
      std::erase_if(node.control, [&](NodeId c) { return no_control(c); });
      for (NodeId& c : node.control) c = numbers_.at(c);
      sort_control(node);
      out.nodes.push_back(std::move(node));
    }
  }

  void copy_functions(GraphDef& out) {
    std::set<std::size_t> called;
    std::vector<std::size_t> open;
    auto look = [&](const std::vector<NodeDef>& nodes) {
      for (const NodeDef& node : nodes) {
        if (role_of(node, ops_) != Role::call) continue;
        for (const std::string& name : functions_of(node))
          if (const std::size_t f = index_.function(name);
              f < graph_.functions.size() && called.insert(f).second)
            open.push_back(f);
      }
    };
    if (graph_.functions.empty()) return;
    look(out.nodes);
    while (!open.empty()) {
      const FunctionDef& f = graph_.functions[open.back()];
      open.pop_back();
      look(f.nodes);
    }
    for (std::size_t f : called) out.functions.push_back(graph_.functions[f]);
  }

  const GraphDef& graph_;
  const GraphIndex& index_;
  Wanted wanted_;
  const OpRegistry& ops_;
  std::map<Port, std::size_t> fed_;
  std::unordered_set<NodeId> fed_nodes_;
  std::vector<NodeId> open_;
  std::set<std::size_t> needed_feeds_;
  std::unordered_map<std::size_t, NodeId> feed_numbers_;
  std::unordered_map<NodeId, NodeId> numbers_;  // needed nodes: number here -> in the step
  std::vector<NodeId> order_;
};

// Whether shapes may have been inferred from a value that is fed.
bool feeds_known_values(const GraphDef& graph, const Wanted& wanted, const OpRegistry& ops) {
  return std::any_of(wanted.feeds.begin(), wanted.feeds.end(), [&](Port port) {
    const NodeDef& node = graph.nodes[port.node];
    return node.op == "Const" || op_of(node, ops).def.value;
  });
}

}  // namespace

Expected<StepGraph> feed_and_take(const GraphDef& graph, const GraphIndex& index,
                                  const CompileRequest& request, const OpRegistry& ops) {
  TROUPE_TRY(Wanted wanted, look_up(graph, index, request));
  const bool known = feeds_known_values(graph, wanted, ops);
  StepGraph step = Taker(graph, index, std::move(wanted), ops).take_needed();
  step.replicas = request.replicas;
  if (known) TROUPE_TRY(ensure_fed_shapes(step, ops));
  return step;
}

Expected<StepGraph> feed_and_fetch(const GraphDef& graph, const GraphIndex& index,
                                   const CompileRequest& request, const OpRegistry& ops) {
  TROUPE_TRY(Wanted wanted, look_up(graph, index, request));
  const bool known = feeds_known_values(graph, wanted, ops);
  StepGraph step = Taker(graph, index, std::move(wanted), ops).take_all();
  step.replicas = request.replicas;
  if (known) TROUPE_TRY(ensure_fed_shapes(step, ops));
  return step;
}

}  // namespace troupe
