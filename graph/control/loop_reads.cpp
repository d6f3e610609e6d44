// Of the bodies of a loop: what they read of variables that stay as they are.
#include <algorithm>
#include <map>

#include "troupe/graph/control/body.hpp"
#include "troupe/graph/control/gradients.hpp"
#include "troupe/graph/control/ops.hpp"
#include "troupe/graph/passes/pass.hpp"

namespace troupe {

// A read that is the same in each iteration is made before the loop, and what it gives becomes an
// argument of the body, in the place of the handle:
//
//   body(handle) { ... ReadVariable(handle) ... }     becomes     body(value) { ... value ... }
//
// So gradients find one value rather than one for each iteration. Handles that the body uses in
// another way, too, stay; compiling sees to their reads (state.hpp).
class ReadsBefore {
 public:
  ReadsBefore(const std::vector<Body*>& loop, const std::vector<Op>& before)
      : loop_(loop), parent_(*loop[0]->parent_), before_(before) {}

  Status run() {
    for (Body* body : loop_) {
      GraphBuilder& g = body->graph();
      const std::vector<Output> captured = g.body_->captured;
      for (std::size_t k = 0; k < captured.size(); ++k) {
        const NodeId argument = g.body_->arguments[g.body_->declared + k];
        const std::vector<NodeId> reads = free_reads(g, argument);
        if (reads.empty() || is_written(g.node(argument)) || comes_after_write(captured[k]))
          continue;
        TROUPE_TRY(Output value, read(captured[k], g.node(reads[0])));
        replace(*body, k, value, reads);
      }
    }
    return ok_status();
  }

 private:
  static bool is_variable(const GraphBuilder& g, NodeId id) {
    const OpDef& op = op_of(g.node(id), g.registry()).def;
    return is_handle(op.role) && op.external.resource == "variable";
  }
  static std::string key(const GraphBuilder& g, NodeId handle) {
    return resource_key(g.node(handle), g.registry());
  }

  // The nodes that take a handle, where all are reads of one kind that nothing comes before.
  static std::vector<NodeId> free_reads(const GraphBuilder& g, NodeId handle) {
    if (!is_variable(g, handle)) return {};
    std::vector<NodeId> reads;
    for (NodeId id = 0; id < g.def_.nodes.size(); ++id) {
      const NodeDef& node = g.node(id);
      if (std::none_of(node.inputs.begin(), node.inputs.end(),
                       [&](Port in) { return in.node == handle; }))
        continue;
      if (!op_of(node, g.registry()).is(External::Order::read) || !node.control.empty()) return {};
      if (!reads.empty() && g.node(reads[0]).op != node.op) return {};
      reads.push_back(id);
    }
    return reads;
  }

  static bool writes(const GraphBuilder& g, NodeId id, const std::string& variable) {
    const NodeDef& node = g.node(id);
    const OpInfo& op = op_of(node, g.registry());
    const bool call = op.def.role == Role::call;
    if (!call && !op.is(External::Order::write)) return false;
    const GraphDef& graph = const_cast<GraphBuilder&>(g).root().def();
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (is_variable(g, node.inputs[i].node) && key(g, node.inputs[i].node) == variable &&
          (!call || writes_input(graph, g.registry(), node, i)))
        return true;
    return false;
  }

  bool is_written(const NodeDef& handle) const {
    const std::string variable = resource_key(handle, parent_.registry());
    return std::any_of(loop_.begin(), loop_.end(), [&](const Body* body) {
      const GraphBuilder& g = *body->graph_;
      for (NodeId id = 0; id < g.def_.nodes.size(); ++id)
        if (writes(g, id, variable)) return true;
      return false;
    });
  }

  // Does the loop come after a write of that variable, among the nodes around it?
  bool comes_after_write(const Output& handle) {
    if (ancestors_.empty()) find_ancestors();
    const std::string variable = key(parent_, handle.node());
    for (NodeId id = 0; id < ancestors_.size(); ++id)
      if (ancestors_[id] && writes(parent_, id, variable)) return true;
    return false;
  }

  void find_ancestors() {
    ancestors_.assign(parent_.def_.nodes.size() + 1, false);
    auto reach = [&](const Op& op) {
      if (!op.empty() && &op.graph() == &parent_) ancestors_[op.node()] = true;
    };
    for (const Op& op : before_) reach(op);
    for (const Op& op : parent_.frame().control) reach(op);
    for (const Body* body : loop_) {
      for (const Op& op : body->graph_->body_->waits) reach(op);
      for (const Output& value : body->graph_->body_->captured) reach(Op(value));
    }
    for (NodeId id = NodeId(ancestors_.size() - 1); id-- > 0;) {
      if (!ancestors_[id]) continue;
      for (Port in : parent_.node(id).inputs) ancestors_[in.node] = true;
      for (NodeId c : parent_.node(id).control) ancestors_[c] = true;
    }
    ancestors_.pop_back();
  }

  Expected<Output> read(const Output& handle, const NodeDef& like) {
    auto [at, fresh] = made_.try_emplace({handle.port(), like.op});
    if (fresh) {
      NodeSpec spec{.op = like.op, .inputs = {handle}, .attrs = like.attrs, .site = like.site};
      TROUPE_TRY(Op op, parent_.try_add_here(std::move(spec)));
      NodeDef& read = parent_.def_.nodes[op.node()];
      // Where the variable is, not the loop; in a body, where the client says that it is.
      read.device = parent_.body() ? like.device : std::string();
      read.colocate.clear();
      at->second = op.output();
    }
    return at->second;
  }

  static void replace(Body& body, std::size_t k, const Output& value,
                      const std::vector<NodeId>& reads) {
    GraphBuilder& g = body.graph();
    BodyState& state = *g.body_;
    const NodeId argument = state.arguments[state.declared + k];
    std::erase_if(state.here, [&](const auto& entry) { return entry.second == argument; });
    state.here.emplace(value.port(), argument);
    state.captured[k] = value;
    NodeDef& node = g.def_.nodes[argument];
    node.op = kArgumentOp;
    node.attrs = {{"T", value.dtype()}, {"shape", value.shape()}};
    node.out_types = {value.dtype()};
    node.out_shapes = {value.shape()};
    auto is_read = [&](NodeId id) {
      return std::find(reads.begin(), reads.end(), id) != reads.end();
    };
    for (NodeDef& user : g.def_.nodes)
      for (Port& in : user.inputs)
        if (is_read(in.node)) in = {argument, 0};
    for (Output& result : body.results_)
      if (is_read(result.node())) result = Output(&g, {argument, 0});
    for (NodeId id : reads) {  // for those that come after it
      NodeDef& read = g.def_.nodes[id];
      read.op = "Identity";
      read.attrs = {{"T", value.dtype()}};
      read.inputs = {{argument, 0}};
    }
  }

  const std::vector<Body*>& loop_;
  GraphBuilder& parent_;
  const std::vector<Op>& before_;
  std::vector<bool> ancestors_;  // of the loop, by node of the parent
  std::map<std::pair<Port, std::string>, Output> made_;
};

Status Body::read_before(const std::vector<Body*>& loop, const std::vector<Op>& before) {
  return ReadsBefore(loop, before).run();
}

}  // namespace troupe
