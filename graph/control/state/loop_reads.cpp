#include "graph/control/state/loop_reads.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "graph/control/functions/calls.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/node_query.hpp"

namespace troupe {

// Moves an invariant read before the loop; its value becomes an argument of the body, in place of
// the handle:
//
//   body(handle) { ... ReadVariable(handle) ... }     becomes     body(value) { ... value ... }
//
// So gradients use one value rather than one for each iteration. Handles with other uses in the
// body stay; compiling handles their reads (state.hpp).
class ReadsBefore {
 public:
  ReadsBefore(const std::vector<Body*>& loop, const std::vector<Op>& before)
      : loop_(loop), parent_(*loop[0]->parent_), before_(before) {}

  Status run() {
    find_used();
    if (used_.empty()) return ok_status();
    find_written();
    for (Body* body : loop_) {
      GraphBuilder& g = body->graph();
      const Users users = users_of(g);
      const std::vector<Output> captured = g.body_->captured;
      std::unordered_map<NodeId, NodeId> replaced;  // read -> argument
      for (std::size_t k = 0; k < captured.size(); ++k) {
        const NodeId argument = g.body_->arguments[g.body_->declared + k];
        const std::vector<NodeId> reads = free_reads(g, argument, users[argument]);
        if (reads.empty() || written_.contains(key(g, argument))) continue;
        TROUPE_TRY(Output value, read(captured[k], g.node(reads[0])));
        for (NodeId id : reads) replaced.emplace(id, argument);
        take_value(g, k, value);
      }
      replace(*body, replaced);
    }
    return ok_status();
  }

 private:
  using Users = std::vector<std::vector<NodeId>>;  // by node, each once

  static bool is_variable(const GraphBuilder& g, NodeId id) {
    const OpDef& op = op_of(g.node(id), g.registry()).def;
    return is_handle(op.role) && op.external.resource == "variable";
  }
  static std::string key(const GraphBuilder& g, NodeId handle) {
    return resource_key(g.node(handle), g.registry());
  }

  static Users users_of(const GraphBuilder& g) {
    Users users(g.def_.nodes.size());
    for (NodeId id = 0; id < g.def_.nodes.size(); ++id)
      for (Port in : g.node(id).inputs)
        if (users[in.node].empty() || users[in.node].back() != id) users[in.node].push_back(id);
    return users;
  }

  // The users of a handle, if all are reads of one kind without control inputs; else none.
  static std::vector<NodeId> free_reads(const GraphBuilder& g, NodeId handle,
                                        const std::vector<NodeId>& users) {
    if (!is_variable(g, handle)) return {};
    const bool free = std::all_of(users.begin(), users.end(), [&](NodeId id) {
      const NodeDef& node = g.node(id);
      return op_of(node, g.registry()).is(External::Order::read) && node.control.empty() &&
             node.op == g.node(users[0]).op;
    });
    return free ? users : std::vector<NodeId>();
  }

  void find_used() {
    for (const Body* body : loop_)
      for (const Output& value : body->graph_->body_->captured)
        if (is_variable(parent_, value.node())) used_.insert(key(parent_, value.node()));
  }

  void find_written() {
    for (const Body* body : loop_)
      for (NodeId id = 0; id < body->graph_->def_.nodes.size(); ++id)
        add_written(*body->graph_, id);
    const std::vector<bool> before = ancestors();
    for (NodeId id = 0; id < before.size(); ++id)
      if (before[id]) add_written(parent_, id);
  }

  void add_written(const GraphBuilder& g, NodeId id) {
    const NodeDef& node = g.node(id);
    const OpInfo& op = op_of(node, g.registry());
    const bool call = op.def.role == Role::call;
    if (!call && !op.is(External::Order::write)) return;
    const GraphDef& graph = parent_.root().def();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_variable(g, node.inputs[i].node)) continue;
      std::string variable = key(g, node.inputs[i].node);
      if (used_.contains(variable) && (!call || writes_input(graph, g.registry(), node, i)))
        written_.insert(std::move(variable));
    }
  }

  // The ancestors of the loop, by node of the parent.
  std::vector<bool> ancestors() const {
    std::vector<bool> found(parent_.def_.nodes.size(), false);
    auto reach = [&](const Op& op) {
      if (!op.empty() && &op.graph() == &parent_) found[op.node()] = true;
    };
    for (const Op& op : before_) reach(op);
    for (const Op& op : parent_.frame().control) reach(op);
    for (const Body* body : loop_) {
      for (const Op& op : body->graph_->body_->waits) reach(op);
      for (const Output& value : body->graph_->body_->captured) reach(Op(value));
    }
    for (NodeId id = NodeId(found.size()); id-- > 0;) {
      if (!found[id]) continue;
      for (Port in : parent_.node(id).inputs) found[in.node] = true;
      for (NodeId c : parent_.node(id).control) found[c] = true;
    }
    return found;
  }

  Expected<Output> read(const Output& handle, const NodeDef& like) {
    auto [at, fresh] = made_.try_emplace({handle.port(), like.op});
    if (fresh) {
      NodeSpec spec{.op = like.op, .inputs = {handle}, .attrs = like.attrs, .site = like.site};
      TROUPE_TRY(Op op, parent_.try_add_here(std::move(spec)));
      NodeDef& read = parent_.def_.nodes[op.node()];
      // Placed with the variable, not the loop; in a body, on the device that the client named.
      read.device = parent_.body() ? like.device : std::string();
      read.colocate.clear();
      at->second = op.output();
    }
    return at->second;
  }

  // Makes the argument one for the value instead of the handle.
  static void take_value(GraphBuilder& g, std::size_t k, const Output& value) {
    BodyState& state = *g.body_;
    const NodeId argument = state.arguments[state.declared + k];
    state.here.erase(state.captured[k].port());
    state.here.emplace(value.port(), argument);
    state.captured[k] = value;
    NodeDef& node = g.def_.nodes[argument];
    node.op = kArgumentOp;
    node.attrs = {{"T", value.dtype()}, {"shape", value.shape()}};
    node.out_types = {value.dtype()};
    node.out_shapes = {value.shape()};
  }

  static void replace(Body& body, const std::unordered_map<NodeId, NodeId>& replaced) {
    if (replaced.empty()) return;
    GraphBuilder& g = body.graph();
    for (NodeDef& user : g.def_.nodes)
      for (Port& in : user.inputs)
        if (auto at = replaced.find(in.node); at != replaced.end()) in = {at->second, 0};
    for (Output& result : body.results_)
      if (auto at = replaced.find(result.node()); at != replaced.end())
        result = Output(&g, {at->second, 0});
    for (const auto& [id, argument] : replaced) {  // for nodes that come after it
      NodeDef& read = g.def_.nodes[id];
      read.op = "Identity";
      read.attrs = {{"T", g.node(argument).out_types[0]}};
      read.inputs = {{argument, 0}};
    }
  }

  const std::vector<Body*>& loop_;
  GraphBuilder& parent_;
  const std::vector<Op>& before_;
  std::set<std::string> used_;     // variables that the loop takes
  std::set<std::string> written_;  // of these: by the loop, or before it
  std::map<std::pair<Port, std::string>, Output> made_;
};

Status read_before_loop(const std::vector<Body*>& loop, const std::vector<Op>& before) {
  return ReadsBefore(loop, before).run();
}

}  // namespace troupe
