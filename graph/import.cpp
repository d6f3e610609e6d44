#include "graph/import.hpp"

#include <algorithm>
#include <queue>

#include "graph/compile.hpp"
#include "graph/control/functions/calls.hpp"
#include "graph/control/functions/function_checks.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/detail/back_edge.hpp"
#include "graph/detail/device_over.hpp"
#include "graph/detail/node_check.hpp"
#include "graph/detail/suggest.hpp"
#include "graph/known_values.hpp"

namespace troupe {

namespace {

Status in_function(const Status& status, const FunctionDef& f) {
  return status.at(f.site).in("in function " + quoted(f.name));
}

constexpr std::size_t kMostFunctions = std::size_t{1} << 16;
constexpr std::size_t kMaxNodes = std::size_t{1} << 24;
// Inputs and outputs of all nodes.
constexpr std::size_t kMaxGraphPorts = std::size_t{1} << 25;

// What nodes take in memory beside the contents of tensors, and what may be made of them: types
// and shapes of outputs, defaults, values that are known. A few bytes can ask for much of that.
constexpr std::size_t kAttrBytes = 128;
constexpr std::size_t kOutputBytes = sizeof(DType) + sizeof(PartialShape) + 8 * kMaxRank;
constexpr std::size_t kKnownBytes = 512;
constexpr std::size_t kMadeFreely = std::size_t{64} << 20;
constexpr std::size_t kMadePerByte = 8;

std::size_t bytes_of(const NodeDef& node) {
  return sizeof(NodeDef) + node.name.size() + node.inputs.size() * sizeof(Port) +
         node.attrs.size() * kAttrBytes;
}

}  // namespace

// Nodes from `begin_` on are on their way into the graph.
class GraphImport::Extension {
 public:
  explicit Extension(GraphImport& import)
      : import_(import),
        graph_(import.graph_),
        registry_(import.registry_),
        by_name_(import.by_name_),
        ops_(import.ops_),
        known_(import.known_),
        ports_(import.ports_),
        in_order_(import.in_order_),
        begin_(NodeId(import.graph_.nodes.size())),
        ports_before_(import.ports_),
        in_order_before_(import.in_order_),
        made_(*import.counted_) {}

  Status run(std::vector<NodeDef> nodes) {
    if (begin_ + nodes.size() > kMaxNodes)
      return invalid_argument("the graph has " + std::to_string(begin_ + nodes.size()) +
                              " nodes, more than " + std::to_string(kMaxNodes));
    if (begin_ == 0)
      graph_.nodes = std::move(nodes);
    else
      graph_.nodes.insert(graph_.nodes.end(), std::make_move_iterator(nodes.begin()),
                          std::make_move_iterator(nodes.end()));
    Status status = check();
    if (!status.ok()) take_back();
    return status;
  }

 private:
  Status check() {
    TROUPE_TRY(each(&Extension::name));
    TROUPE_TRY(each(&Extension::op));
    TROUPE_TRY(each(&Extension::edges));
    TROUPE_TRY(each(&Extension::placement));
    TROUPE_TRY(sort());
    for (NodeId id = begin_; id < graph_.nodes.size(); ++id) {
      node(id).out_types.clear();
      node(id).out_shapes.clear();
    }
    TROUPE_TRY(each(&Extension::infer));
    return each(&Extension::back_edges);
  }

  void take_back() {
    for (NodeId id = begin_; id < graph_.nodes.size(); ++id) {
      // Of two nodes of one name the first may be an earlier one, which stays.
      auto at = by_name_.find(node(id).name);
      if (at != by_name_.end() && at->second >= begin_) by_name_.erase(at);
      known_.erase(id);
    }
    graph_.nodes.resize(begin_);
    ops_.resize(begin_);
    ports_ = ports_before_;
    in_order_ = in_order_before_;
  }

  Status each(Status (Extension::*check)(NodeId)) {
    for (NodeId id = begin_; id < graph_.nodes.size(); ++id)
      if (Status s = (this->*check)(id); !s.ok())
        return s.at(node(id).site).in("in node " + quoted(node(id).name));
    return ok_status();
  }

  NodeDef& node(NodeId id) { return graph_.nodes[id]; }

  Status name(NodeId id) {
    const NodeDef& n = node(id);
    if (Status s = detail::check_site(n.site); !s.ok()) {
      node(id).site = {};  // or the error would show it
      return s;
    }
    if (!valid_node_name(n.name)) return invalid_argument(quoted(n.name) + " is no node name");
    made_.given += bytes_of(n);
    auto [at, added] = by_name_.emplace(n.name, id);
    if (!added)
      return invalid_argument("nodes " + std::to_string(at->second) + " and " + std::to_string(id) +
                              " are both named " + quoted(n.name));
    return ok_status();
  }

  Status op(NodeId id) {
    TROUPE_TRY(const OpInfo* op, registry_.lookup(node(id).op));
    if (op->def.composite)
      return invalid_argument("op " + node(id).op +
                              " is built of other ops, which stand in a graph"
                              " in its place");
    ops_.push_back(op);
    return ok_status();
  }

  Status edges(NodeId id) {
    NodeDef& n = node(id);
    const std::size_t nodes = graph_.nodes.size();
    auto missing = [&](std::string what, NodeId at) {
      return invalid_argument(what + " of node " + n.name + " is node number " +
                              std::to_string(at) + " of " + std::to_string(nodes));
    };
    if (n.inputs.size() > detail::kMaxPorts)
      return invalid_argument(std::to_string(n.inputs.size()) + " inputs are too many");
    TROUPE_TRY(count_ports(n.inputs.size()));
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i].node >= nodes) return missing("Input " + std::to_string(i), n.inputs[i].node);
    for (NodeId control : n.control)
      if (control >= nodes) return missing("A control input", control);
    std::sort(n.control.begin(), n.control.end());
    n.control.erase(std::unique(n.control.begin(), n.control.end()), n.control.end());
    return count_ports(n.control.size());
  }

  Status count_ports(std::size_t more) {
    ports_ += more;
    if (ports_ <= kMaxGraphPorts) return ok_status();
    return invalid_argument("the graph has more than " + std::to_string(kMaxGraphPorts) +
                            " inputs and outputs");
  }

  Status count_made(std::size_t more) {
    made_.made += more;
    if (made_.made <= kMadeFreely + kMadePerByte * made_.given) return ok_status();
    return resource_exhausted(std::to_string(graph_.nodes.size() - begin_) + " nodes of " +
                              std::to_string(made_.given) + " bytes would take more than " +
                              std::to_string(kMadeFreely + kMadePerByte * made_.given) +
                              " with the outputs that they ask for");
  }

  Status placement(NodeId id) {
    NodeDef& n = node(id);
    TROUPE_TRY(DeviceName device, DeviceName::parse(n.device));
    n.device = detail::device_text(device, n.device);
    if (n.replica != -1)
      return invalid_argument(
          "replica " + std::to_string(n.replica) +
          ": only the step that is compiled of a graph has copies for replicas");
    for (const std::string& other : n.colocate)
      if (!by_name_.contains(other))
        return not_found("colocated with " + quoted(other) + ", which is not in the graph" +
                         detail::suggest(other, names()));
    return ok_status();
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, id] : by_name_) out.push_back(name);
    return out;
  }

  // --- order: every input before its node, but for the back edges of loops ---

  bool back_edge(Port from, NodeId to) const {
    return ops_[to]->def.role == Role::merge && ops_[from.node]->def.role == Role::next_iteration;
  }

  template <class F>
  void each_predecessor(NodeId id, F f) {
    for (Port p : node(id).inputs)
      if (!back_edge(p, id)) f(p.node);
    for (NodeId control : node(id).control) f(control);
  }

  // Nodes already in order stay where they are: the smallest number goes first. Those of before
  // come before.
  Status sort() {
    const std::size_t nodes = graph_.nodes.size() - begin_;
    std::vector<std::uint32_t> pending(nodes, 0);
    std::vector<std::vector<NodeId>> successors(nodes);
    for (NodeId id = begin_; id < graph_.nodes.size(); ++id)
      each_predecessor(id, [&](NodeId from) {
        if (from < begin_) return;
        ++pending[id - begin_];
        successors[from - begin_].push_back(id);
      });
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (NodeId id = begin_; id < graph_.nodes.size(); ++id)
      if (pending[id - begin_] == 0) ready.push(id);
    std::vector<NodeId> order;
    while (!ready.empty()) {
      NodeId id = ready.top();
      ready.pop();
      order.push_back(id);
      for (NodeId to : successors[id - begin_])
        if (--pending[to - begin_] == 0) ready.push(to);
    }
    if (order.size() < nodes) return cycle(pending);
    if (std::is_sorted(order.begin(), order.end())) return ok_status();
    in_order_ = false;
    permute(order);
    return ok_status();
  }

  // Every node still pending has a pending predecessor, so walking back meets itself.
  Status cycle(const std::vector<std::uint32_t>& pending) {
    NodeId at = begin_;
    while (pending[at - begin_] == 0) ++at;
    std::vector<NodeId> path;
    std::unordered_map<NodeId, std::size_t> seen;
    while (seen.emplace(at, path.size()).second) {
      path.push_back(at);
      NodeId next = kNoNode;
      each_predecessor(at, [&](NodeId from) {
        if (next == kNoNode && from >= begin_ && pending[from - begin_] > 0) next = from;
      });
      at = next;
    }
    path.erase(path.begin(), path.begin() + std::ptrdiff_t(seen[at]));
    std::reverse(path.begin(), path.end());
    constexpr std::size_t kMostShown = 8;
    std::string text;
    auto shown = [&](NodeId id) {
      return quoted(node(id).name) + " (" + node(id).site.text() + ")";
    };
    for (std::size_t i = 0; i < std::min(path.size(), kMostShown); ++i)
      text += shown(path[i]) + " -> ";
    text += path.size() > kMostShown ? "..." : quoted(node(path[0]).name);
    return invalid_argument(std::to_string(path.size()) + " nodes in a cycle: " + text +
                            "; only Merge nodes can have back edges, from NextIteration")
        .at(node(path[0]).site);
  }

  void permute(const std::vector<NodeId>& order) {
    std::vector<NodeId> place(order.size());
    std::vector<NodeDef> nodes;
    std::vector<const OpInfo*> ops;
    for (std::size_t to = 0; to < order.size(); ++to) {
      place[order[to] - begin_] = begin_ + NodeId(to);
      nodes.push_back(std::move(graph_.nodes[order[to]]));
      ops.push_back(ops_[order[to]]);
    }
    auto move = [&](NodeId& id) {
      if (id >= begin_) id = place[id - begin_];
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      NodeDef& n = nodes[i];
      for (Port& p : n.inputs) move(p.node);
      for (NodeId& control : n.control) move(control);
      std::sort(n.control.begin(), n.control.end());
      by_name_[n.name] = begin_ + NodeId(i);
      graph_.nodes[begin_ + i] = std::move(n);
      ops_[begin_ + i] = ops[i];
    }
  }

  // --- types, shapes, defaults ---

  Status infer(NodeId id) {
    NodeDef& n = node(id);
    std::vector<InferenceContext::Input> inputs(n.inputs.size());
    std::size_t entry = n.inputs.size();  // the first input that is no back edge
    for (std::size_t i = n.inputs.size(); i-- > 0;) {
      if (back_edge(n.inputs[i], id)) continue;
      TROUPE_TRY(inputs[i], known(n, i));
      entry = i;
    }
    // What comes back is checked later; until then it is taken for what enters.
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!back_edge(n.inputs[i], id)) continue;
      if (entry == inputs.size()) return invalid_argument("every input is a back edge");
      inputs[i] = {inputs[entry].dtype, inputs[entry].shape};
    }
    auto producer = [&](int i) {
      Port p = n.inputs[std::size_t(i)];
      return node(p.node).name + ":" + std::to_string(p.index);
    };
    if (ops_[id]->def.role == Role::call) TROUPE_TRY(call(n, inputs));
    if (ops_[id]->def.role == Role::saved) TROUPE_TRY(saved(n));
    const std::size_t attrs = n.attrs.size();
    TROUPE_TRY(detail::check_node(*ops_[id], n, inputs, producer));
    auto known = known_values(*ops_[id], n, inputs);
    TROUPE_TRY(count_made((n.attrs.size() - attrs) * kAttrBytes +
                          n.out_types.size() * kOutputBytes + known.size() * kKnownBytes));
    if (!known.empty()) known_.emplace(id, std::move(known));
    return count_ports(n.out_types.size());
  }

  // The functions that it names take what it passes, and return what it says.
  Status call(NodeDef& n, const std::vector<InferenceContext::Input>& inputs) {
    std::vector<ValueType> arguments;
    for (std::size_t i = selectors(n); i < inputs.size(); ++i)
      arguments.push_back({inputs[i].dtype, inputs[i].shape});
    return check_call(n, arguments, [&](std::string_view name) { return import_.function(name); });
  }

  // Its type and shape are those of a node of another body.
  Status saved(const NodeDef& n) {
    auto text = [&](const char* name) {
      auto at = n.attrs.find(name);
      const auto* value = at == n.attrs.end() ? nullptr : at->second.get<std::string>();
      return value ? *value : std::string();
    };
    auto negative = [](std::int64_t i) { return i < 0; };
    if (n.op != kSavedOp) {
      auto at = n.attrs.find("ports");
      const auto* list =
          at == n.attrs.end() ? nullptr : at->second.get<std::vector<std::int64_t>>();
      if (list && std::any_of(list->begin(), list->end(), negative))
        return invalid_argument("a number is negative");
      return ok_status();
    }
    const FunctionDef* f = import_.function(text("function"));
    if (!f) return not_found("there is no function " + quoted(text("function")));
    auto number = n.attrs.find("port");
    const auto* port = number == n.attrs.end() ? nullptr : number->second.get<std::int64_t>();
    auto branch = n.attrs.find("branch");
    const auto* b = branch == n.attrs.end() ? nullptr : branch->second.get<std::int64_t>();
    if ((port && *port < 0) || (b && *b < 0)) return invalid_argument("a number is negative");
    return ok_status();
  }

  Expected<InferenceContext::Input> known(const NodeDef& n, std::size_t i) {
    Port p = n.inputs[i];
    const NodeDef& from = node(p.node);
    if (p.index >= from.out_types.size())
      return invalid_argument("Input " + std::to_string(i) + " of node " + n.name + " is output " +
                              std::to_string(p.index) + " of " + quoted(from.name) +
                              ", which has " + std::to_string(from.out_types.size()));
    InferenceContext::Input input{from.out_types[p.index], from.out_shapes[p.index]};
    auto at = known_.find(p.node);
    if (at == known_.end() || p.index >= at->second.size()) return input;
    const KnownValue& value = at->second[p.index];
    if (value.value) input.value = &*value.value;
    if (value.ints) input.ints = &*value.ints;
    return input;
  }

  Status back_edges(NodeId id) {
    const NodeDef& n = node(id);
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (!back_edge(n.inputs[i], id)) continue;
      TROUPE_TRY(auto input, known(n, i));
      TROUPE_TRY(detail::check_back_edge(n, input.dtype, input.shape));
    }
    return ok_status();
  }

  const GraphImport& import_;
  GraphDef& graph_;
  const OpRegistry& registry_;
  std::unordered_map<std::string, NodeId>& by_name_;
  std::vector<const OpInfo*>& ops_;
  std::unordered_map<NodeId, std::vector<KnownValue>>& known_;
  std::size_t& ports_;
  bool& in_order_;
  const NodeId begin_;
  const std::size_t ports_before_;
  const bool in_order_before_;
  Made& made_;
};

Status GraphImport::extend(std::vector<NodeDef> nodes, std::vector<FunctionDef> functions) {
  const std::size_t known = graph_.functions.size();
  Made made;
  if (!around_) counted_ = &made;
  Status status = add_functions(std::move(functions));
  if (status.ok()) status = Extension(*this).run(std::move(nodes));
  if (!around_) counted_ = nullptr;
  if (status.ok()) return status;
  for (std::size_t i = known; i < graph_.functions.size(); ++i)
    if (auto at = functions_.find(graph_.functions[i].name);
        at != functions_.end() && at->second >= known)
      functions_.erase(at);
  graph_.functions.resize(known);
  return status;
}

// --- functions: each body is a graph, and holds to what the function says of itself ---

const FunctionDef* GraphImport::function(std::string_view name) const {
  const GraphImport& known = around_ ? *around_ : *this;
  auto at = known.functions_.find(std::string(name));
  return at == known.functions_.end() ? nullptr : &known.graph_.functions[at->second];
}

// Arguments first, of all: bodies may call whatever function there is.
Status GraphImport::add_functions(std::vector<FunctionDef> functions) {
  const std::size_t first = graph_.functions.size();
  if (first + functions.size() > kMostFunctions)
    return invalid_argument("the graph has more than " + std::to_string(kMostFunctions) +
                            " functions");
  for (FunctionDef& f : functions) {
    TROUPE_TRY(detail::check_site(f.site));
    if (!valid_node_name(f.name))
      return invalid_argument(quoted(f.name) + " is no name of a function").at(f.site);
    if (!functions_.emplace(f.name, graph_.functions.size()).second)
      return invalid_argument("two functions are both named " + quoted(f.name)).at(f.site);
    graph_.functions.push_back(std::move(f));
  }
  for (std::size_t i = first; i < graph_.functions.size(); ++i) {
    FunctionDef& f = graph_.functions[i];
    if (Status s = check_signature(f, registry_); !s.ok()) return in_function(s, f);
    for (NodeId id : f.arguments) {
      // On its own, so that calls can be checked before its body is.
      GraphImport alone(registry_);
      alone.around_ = this;
      alone.counted_ = counted_;
      NodeDef argument = f.nodes[id];
      argument.colocate.clear();
      if (Status s = alone.extend({std::move(argument)}); !s.ok()) return in_function(s, f);
      f.nodes[id].out_types = alone.graph_.nodes[0].out_types;
      f.nodes[id].out_shapes = alone.graph_.nodes[0].out_shapes;
      if (f.nodes[id].out_types.size() != 1)
        return in_function(invalid_argument("an argument has one output"), f);
    }
  }
  for (std::size_t i = first; i < graph_.functions.size(); ++i) {
    FunctionDef f = graph_.functions[i];  // calls look at the others, and at this one
    if (Status s = check_body(f); !s.ok()) return in_function(s, f);
    graph_.functions[i] = std::move(f);
  }
  return ok_status();
}

Status GraphImport::check_body(FunctionDef& f) const {
  GraphImport body(registry_, graph_.seed);
  body.around_ = this;
  body.counted_ = counted_;
  TROUPE_TRY(body.extend(f.nodes));
  if (!body.in_order_) return invalid_argument("its nodes do not come after what they need");
  f.nodes = std::move(body.graph_.nodes);
  return troupe::check_body(f, registry_);
}

Expected<GraphDef> import_graph(GraphDef graph, const OpRegistry& registry) {
  GraphImport import(registry, graph.seed);
  TROUPE_TRY(import.extend(std::move(graph.nodes), std::move(graph.functions)));
  return std::move(import).take();
}

}  // namespace troupe
