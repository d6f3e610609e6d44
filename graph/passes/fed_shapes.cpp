#include "graph/passes/fed_shapes.hpp"

#include <algorithm>

#include "graph/control/functions/ops.hpp"
#include "graph/detail/node_check.hpp"
#include "graph/known_values.hpp"

namespace troupe {
namespace {

// Infers the shapes of a step again, where what is fed has no known value.
class FedShapes {
 public:
  FedShapes(StepGraph& step, const OpRegistry& ops)
      : nodes_(step.graph.nodes),
        ops_(ops),
        known_(nodes_.size()),
        fed_(nodes_.size(), false),
        out_(step) {}

  Status run() {
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      std::vector<Unsure> all;
      if (nodes_[id].op == kFeedOp)
        fed_[id] = true;
      else
        all = look(id);
      const NodeId made = out_.keep(id);
      for (const Unsure& unsure : all) ensure({id, unsure.port}, made, unsure.shape);
    }
    out_.finish();
    return ok_status();
  }

 private:
  // An output of which less is known without the values that are fed: only this shape.
  struct Unsure {
    std::uint32_t port;
    PartialShape shape;
  };
  std::vector<Unsure> look(NodeId id) {
    const NodeDef& node = nodes_[id];
    const OpInfo& op = op_of(node, ops_);
    std::vector<InferenceContext::Input> inputs;
    for (const Port in : node.inputs) {
      if (!out_.has(in.node)) return {};  // of a loop: its shape is that of what enters
      const Port now = out_.port(in);
      const NodeDef& from = out_.graph().nodes[now.node];
      inputs.push_back({from.out_types[now.index], from.out_shapes[now.index]});
      if (in.index >= known_[in.node].size()) continue;
      const KnownValue& value = known_[in.node][in.index];
      if (value.value) inputs.back().value = &*value.value;
      if (value.ints) inputs.back().ints = &*value.ints;
    }
    known_[id] = known_values(op, node, inputs);
    if (!takes_fed(node)) return {};
    fed_[id] = bool(op.def.value);
    NodeDef again = node;
    const auto producer = [&](int i) { return node.name + "'s input " + std::to_string(i); };
    const bool inferred = detail::check_node(op, again, inputs, producer).ok();
    std::vector<Unsure> unsure;
    for (std::uint32_t port = 0; port < node.out_shapes.size(); ++port) {
      const DType type = node.out_types[port];
      if (type == DType::resource || type == DType::list) continue;
      const PartialShape sure = inferred ? again.out_shapes[port] : PartialShape::unknown();
      const auto both = PartialShape::merge(node.out_shapes[port], sure);
      if (!both.ok() || !(*both == sure)) unsure.push_back({port, sure});
    }
    return unsure;
  }

  bool takes_fed(const NodeDef& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](Port in) { return fed_[in.node]; });
  }

  // From here on the node tells the shape that is sure, wherever its value goes. REQUIRES: it was
  // kept.
  void ensure(Port port, NodeId made, const PartialShape& sure) {
    NodeDef& source = out_.edit(made);
    NodeDef node;
    node.name = "_fed_shape/" + source.name + ":" + std::to_string(port.index);
    node.op = kEnsuredOp;
    node.device = source.device;
    node.site = source.site;
    node.inputs = {{made, port.index}};
    node.out_types = {source.out_types[port.index]};
    node.out_shapes = {source.out_shapes[port.index]};
    node.attrs = {{"T", node.out_types[0]},
                  {"shape", node.out_shapes[0]},
                  {"message", quoted(source.name) + " (" + source.op +
                                  "), whose shape was inferred from a value that is fed"}};
    source.out_shapes[port.index] = sure;
    out_.map_port(port, {out_.append(std::move(node)), 0});
  }

  const std::vector<NodeDef>& nodes_;
  const OpRegistry& ops_;
  std::vector<std::vector<KnownValue>> known_;  // by node
  std::vector<bool> fed_;                       // what is not known of it may be since it is fed
  Rewriter out_;
};

}  // namespace

Status ensure_fed_shapes(StepGraph& step, const OpRegistry& ops) {
  if (!ops.find(kEnsuredOp)) return ok_status();  // of a test: nothing can be checked
  return FedShapes(step, ops).run();
}

}  // namespace troupe
