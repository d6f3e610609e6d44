#include "graph/control/paper_loops/detail/raised_loop.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "graph/control/functions/node_copies.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/control/lowering/deadness.hpp"
#include "graph/value_type.hpp"

namespace troupe::detail {
namespace {

ValueType type_of(const std::vector<NodeDef>& nodes, Port port) {
  const NodeDef& node = nodes[port.node];
  return {node.out_types[port.index], node.out_shapes[port.index]};
}

// A node that calls functions.
NodeDef call_node(std::string op, std::string name, const std::vector<ValueType>& arguments,
                  const std::vector<ValueType>& results) {
  NodeDef node;
  node.op = std::move(op);
  node.name = std::move(name);
  std::vector<DType> in;
  for (const ValueType& type : arguments) in.push_back(type.dtype);
  for (const ValueType& type : results) {
    node.out_types.push_back(type.dtype);
    node.out_shapes.push_back(type.shape);
  }
  node.attrs = {{"Tin", in}, {"Tout", node.out_types}, {"shapes", node.out_shapes}};
  node.out_types.push_back(DType::resource);  // `saved`, for gradients
  node.out_shapes.push_back(PartialShape::unknown());
  return node;
}

// A function under construction, into which nodes are moved.
class MovedNodes {
 public:
  MovedNodes(const std::vector<NodeDef>& from, std::string name, const Site& site)
      : from_(from), copies_(from) {
    f_.name = std::move(name);
    f_.site = site;
  }

  const std::vector<NodeDef>& nodes() const { return copies_.made(); }

  // Adds an argument that replaces a port of the old nodes.
  void argument(Port of, const OpRegistry& ops) {
    const NodeDef& source = from_[of.node];
    NodeDef node{.name = source.name, .site = source.site};
    node.out_types = {source.out_types[of.index]};
    node.out_shapes = {source.out_shapes[of.index]};
    if (is_handle(role_of(source, ops))) {
      node.op = source.op;
      node.attrs = source.attrs;
      if (op_of(source, ops).attr("shared_name"))
        node.attrs.insert_or_assign("shared_name", Attr(resource_name(source)));
    } else {
      node.op = kArgumentOp;
      node.attrs = {{"T", node.out_types[0]}, {"shape", node.out_shapes[0]}};
    }
    const NodeId made = copies_.append(std::move(node));
    f_.arguments.push_back(made);
    copies_.map_port(of, {made, 0});
    if (copies_.node(of.node) == kNoNode) copies_.map(of.node, made);
  }

  NodeId append(NodeDef node) { return copies_.append(std::move(node)); }

  // Moves a node. `inputs` are ports that are mapped here. Control edges from nodes outside the
  // function are dropped: those run earlier.
  void move(NodeId id, const std::vector<Port>& inputs) {
    NodeDef node = from_[id];
    for (std::size_t i = 0; i < inputs.size(); ++i) node.inputs[i] = port(inputs[i]);
    node.control = control_of(node.control);
    copies_.map(id, copies_.append(std::move(node)));
  }

  Port port(Port of) const { return copies_.port(of); }
  std::vector<NodeId> control_of(const std::vector<NodeId>& control) const {
    return copies_.nodes(control);
  }

  // The value, after the nodes in `control`.
  Port after(Port value, const std::vector<NodeId>& control, const NodeDef& like) {
    if (control.empty()) return value;
    NodeDef node{.name = like.name, .op = "Identity", .inputs = {value}, .control = control};
    node.site = like.site;
    node.out_types = {nodes()[value.node].out_types[value.index]};
    node.out_shapes = {nodes()[value.node].out_shapes[value.index]};
    node.attrs.emplace("T", Attr(node.out_types[0]));
    return {append(std::move(node)), 0};
  }

  FunctionDef returns(std::vector<Port> results) && {
    for (Port result : results) {
      const ValueType type = type_of(nodes(), result);
      f_.result_types.push_back(type.dtype);
      f_.result_shapes.push_back(type.shape);
    }
    f_.results = std::move(results);
    f_.nodes = copies_.take();
    return std::move(f_);
  }

 private:
  const std::vector<NodeDef>& from_;
  FunctionDef f_;
  NodeCopies copies_;
};

class LoopRaiser {
 public:
  LoopRaiser(const ClientLoop& loop, std::string name, std::vector<NodeDef>& nodes,
             const ClientFrames& frames, RaisedFunctions& functions, const OpRegistry& ops)
      : loop_(loop),
        name_(std::move(name)),
        nodes_(nodes),
        frames_(frames),
        functions_(functions),
        ops_(ops),
        gates_(loop.switches.begin(), loop.switches.end()) {
    for (const ClientLoop::Variable& v : loop.variables) {
      merges_.insert(v.merge);
      variables_.push_back({v.merge, 0});
    }
    predicate_ = value(cond().inputs[0]);
    for (const ClientLoop::Variable& v : loop.variables)
      next_.push_back(value(nodes_[v.next].inputs[0]));
    for (NodeId id : loop.leaves) last_.push_back(value(nodes_[id].inputs[0]));
  }

  Expected<std::vector<NodeId>> run() {
    find_invariants();
    find_state();
    const std::string condition = functions_.fresh_name(name_ + "/cond");
    const std::string body = functions_.fresh_name(name_ + "/body");
    before_ = control_before();
    std::vector<NodeId> left{loop_.cond};
    std::vector<Port> first;
    for (const ClientLoop::Variable& v : loop_.variables)
      first.push_back(nodes_[v.enter].inputs[0]);
    if (state_.empty()) {
      TROUPE_TRY(add(condition_function(condition)));
      TROUPE_TRY(add(body_function(body, {})));
    } else {
      const std::string made = functions_.fresh_name(name_ + "/condition");
      TROUPE_TRY(add(condition_function(made)));
      TROUPE_TRY(add(known_predicate(condition)));
      TROUPE_TRY(add(body_function(body, made)));
      left.push_back(loop_.variables[0].enter);
      call_first(left.back(), made, first);
    }
    put_while(condition, body, first);
    for (std::size_t i = 0; i < loop_.leaves.size(); ++i) put_leave(loop_.leaves[i], last_[i]);
    left.insert(left.end(), loop_.leaves.begin(), loop_.leaves.end());
    return left;
  }

 private:
  const NodeDef& cond() const { return nodes_[loop_.cond]; }
  bool inside(NodeId id) const { return frames_.of_node[id] == loop_.frame; }

  // The port that a port of the loop has its value from: of a Merge, of the LoopCond, of a plain
  // node, or of a node around the loop.
  Port value(Port p) const {
    while (inside(p.node)) {
      const bool enters = role_of(nodes_[p.node], ops_) == Role::enter;
      if (!enters && !gates_.contains(p.node)) break;
      p = nodes_[p.node].inputs[0];
      if (enters) break;
    }
    return p;
  }
  std::vector<Port> values_of(NodeId id) const {
    std::vector<Port> out;
    for (Port in : nodes_[id].inputs) out.push_back(value(in));
    return out;
  }

  // --- arguments of the functions ---

  void find_invariants() {
    std::set<Port> seen;
    auto use = [&](Port p) {
      if (!inside(p.node) && seen.insert(p).second) invariants_.push_back(p);
    };
    for (const auto* part : {&loop_.condition, &loop_.body})
      for (NodeId id : *part)
        for (Port p : values_of(id)) use(p);
    for (const auto* values : {&next_, &last_})
      for (Port p : *values) use(p);
    use(predicate_);
  }

  // The predicate and the values of the condition that other nodes use. Empty if the condition need
  // not be called as a function.
  void find_state() {
    std::set<NodeId> condition(loop_.condition.begin(), loop_.condition.end());
    condition.insert(loop_.cond);
    std::set<Port> seen;
    auto share = [&](Port p) {
      if (seen.insert(p).second && p != Port{loop_.cond, 0}) state_.push_back(p);
    };
    for (NodeId id : loop_.body)
      for (Port p : values_of(id))
        if (condition.contains(p.node)) share(p);
    for (Port p : next_)
      if (condition.contains(p.node)) share(p);
    for (Port p : last_)
      if (!merges_.contains(p.node)) share(p);
    if (!seen.empty() || loop_.condition_writes) state_.insert(state_.begin(), Port{loop_.cond, 0});
  }

  MovedNodes function(std::string name, bool with_state) const {
    MovedNodes f(nodes_, std::move(name), cond().site);
    for (Port p : variables_) f.argument(p, ops_);
    if (with_state)
      for (Port p : state_) f.argument(p, ops_);
    for (Port p : invariants_) f.argument(p, ops_);
    return f;
  }

  // --- functions ---

  // Returns the predicate and the rest of the state.
  FunctionDef condition_function(std::string name) const {
    MovedNodes f = function(std::move(name), false);
    for (NodeId id : loop_.condition) {
      std::vector<Port> inputs = values_of(id);
      for (Port& in : inputs)
        if (in == Port{loop_.cond, 0}) in = predicate_;
      f.move(id, inputs);
    }
    std::vector<Port> results{f.after(f.port(predicate_), f.control_of(loop_.waited_for), cond())};
    for (std::size_t i = 1; i < state_.size(); ++i) results.push_back(f.port(state_[i]));
    return std::move(f).returns(std::move(results));
  }

  FunctionDef known_predicate(std::string name) const {
    MovedNodes f = function(std::move(name), true);
    const Port known = f.port(state_[0]);
    return std::move(f).returns({known});
  }

  // Returns the next variables and, if `condition` is not empty, the state that it computes from
  // them.
  FunctionDef body_function(std::string name, const std::string& condition) const {
    MovedNodes f = function(std::move(name), !condition.empty());
    for (NodeId id : loop_.body) f.move(id, values_of(id));
    std::vector<Port> results;
    for (std::size_t v = 0; v < next_.size(); ++v) {
      const NodeDef& next = nodes_[loop_.variables[v].next];
      results.push_back(f.after(f.port(next_[v]), f.control_of(next.control), next));
    }
    if (condition.empty()) return std::move(f).returns(std::move(results));
    std::vector<Port> arguments = results;
    for (Port p : invariants_) arguments.push_back(f.port(p));
    NodeDef call = condition_call("condition", condition, f.nodes(), arguments);
    call.control = writes_in(f.nodes());
    const NodeId made = f.append(std::move(call));
    for (std::uint32_t k = 0; k < state_.size(); ++k) results.push_back({made, k});
    return std::move(f).returns(std::move(results));
  }

  // The writes that the next condition may see. In a loop, nothing is written on one side of a
  // Switch.
  std::vector<NodeId> writes_in(const std::vector<NodeDef>& nodes) const {
    const std::vector<bool> dying = nodes_with_dead_outputs(nodes, ops_);
    std::vector<NodeId> out;
    for (NodeId id = 0; id < nodes.size(); ++id) {
      const OpInfo& op = op_of(nodes[id], ops_);
      const bool writes = op.is(External::Order::write) || op.def.role == Role::call;
      if (writes && !dying[id]) out.push_back(id);
    }
    return out;
  }

  Status add(FunctionDef f) {
    const std::vector<bool> dying = nodes_with_dead_outputs(f.nodes, ops_);
    for (Port result : f.results)
      if (dying[result.node])
        return in_node(invalid_argument("the loop " + quoted(name_) +
                                        " hands it on, and it may be dead: bring both sides of "
                                        "its Switch together by a Merge"),
                       f.nodes[result.node]);
    functions_.add(std::move(f));
    return ok_status();
  }

  // --- nodes around the loop ---

  std::vector<ValueType> types(const std::vector<NodeDef>& nodes,
                               const std::vector<Port>& ports) const {
    std::vector<ValueType> out;
    for (Port p : ports) out.push_back(type_of(nodes, p));
    return out;
  }

  // A call of the condition's function, with arguments among `nodes`.
  NodeDef condition_call(std::string name, const std::string& function,
                         const std::vector<NodeDef>& nodes, std::vector<Port> arguments) const {
    NodeDef call =
        call_node("Call", std::move(name), types(nodes, arguments), types(nodes_, state_types()));
    call.attrs.emplace("function", Attr(function));
    call.inputs = std::move(arguments);
    call.site = cond().site;
    return call;
  }
  std::vector<Port> state_types() const {
    std::vector<Port> out = state_;
    out[0] = predicate_;
    return out;
  }

  std::vector<NodeId> control_before() const {
    std::vector<NodeId> out;
    for (NodeId id : loop_.enters)
      out.insert(out.end(), nodes_[id].control.begin(), nodes_[id].control.end());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  // Puts the first call under the number of an Enter, and adds its results to the loop's first
  // values.
  void call_first(NodeId at, const std::string& function, std::vector<Port>& first) {
    std::vector<Port> arguments = first;
    arguments.insert(arguments.end(), invariants_.begin(), invariants_.end());
    NodeDef call = condition_call(nodes_[at].name, function, nodes_, std::move(arguments));
    call.control = before_;
    call.device = cond().device;
    call.colocate = cond().colocate;
    nodes_[at] = std::move(call);
    for (std::uint32_t k = 0; k < state_.size(); ++k) first.push_back({at, k});
  }

  void put_while(const std::string& condition, const std::string& body, std::vector<Port> first) {
    std::vector<Port> variables = variables_;
    for (std::size_t i = 0; i < state_.size(); ++i) variables.push_back(state_types()[i]);
    const auto count = std::int64_t(variables.size());
    first.insert(first.end(), invariants_.begin(), invariants_.end());
    NodeDef loop = call_node("While", name_, types(nodes_, first), types(nodes_, variables));
    loop.attrs.insert({{"cond", Attr(condition)},
                       {"body", Attr(body)},
                       {"variables", Attr(count)},
                       {"reverses", Attr(std::int64_t{-1})},
                       {"window", Attr(loop_.window)}});
    loop.inputs = std::move(first);
    loop.control = before_;
    loop.device = cond().device;
    loop.colocate = cond().colocate;
    loop.site = cond().site;
    nodes_[loop_.cond] = std::move(loop);
  }

  void put_leave(NodeId id, Port last) {
    auto at = std::find(variables_.begin(), variables_.end(), last);
    auto k = std::uint32_t(at - variables_.begin());
    if (at == variables_.end())
      k += std::uint32_t(std::find(state_.begin(), state_.end(), last) - state_.begin());
    NodeDef& leave = nodes_[id];
    leave.op = "Identity";
    leave.inputs = {{loop_.cond, k}};
    leave.control.clear();
    if (leave.device.empty()) leave.device = cond().device;
  }

  const ClientLoop& loop_;
  const std::string name_;
  std::vector<NodeDef>& nodes_;
  const ClientFrames& frames_;
  RaisedFunctions& functions_;
  const OpRegistry& ops_;
  const std::set<NodeId> gates_;
  std::set<NodeId> merges_;
  std::vector<Port> variables_, state_, invariants_;  // as value() returns them
  Port predicate_;
  std::vector<Port> next_, last_;  // by variable; by Leave
  std::vector<NodeId> before_;     // nodes that the loop comes after
};

}  // namespace

RaisedFunctions::RaisedFunctions(const std::vector<FunctionDef>& known) {
  for (const FunctionDef& f : known) names_.insert(f.name);
}

Expected<std::vector<NodeId>> raise_loop(const ClientLoop& loop, const std::string& name,
                                         std::vector<NodeDef>& nodes, const ClientFrames& frames,
                                         RaisedFunctions& functions, const OpRegistry& ops) {
  return LoopRaiser(loop, name, nodes, frames, functions, ops).run();
}

}  // namespace troupe::detail
