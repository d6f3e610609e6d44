// Makes one node of a convolution or a product of matrices, the bias of its channels and Relu, on
// devices with memory of their own: each of the two would read and write all of it again.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "graph/kernel_index.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

// An op, and the one with a bias and attribute `relu`, for Relu, that it becomes.
struct TakesBias {
  std::string_view op, fused;
};
constexpr TakesBias kTakeBias[] = {{"Conv2D", "_Conv2DBias"}, {"MatMul", "_MatMulBias"}};

const TakesBias* takes_bias(std::string_view op) {
  const auto* found = std::find_if(std::begin(kTakeBias), std::end(kTakeBias),
                                   [&](const TakesBias& one) { return one.op == op; });
  return found == std::end(kTakeBias) ? nullptr : found;
}

class Fuser {
 public:
  Fuser(StepGraph& step, const Target& target)
      : step_(step), nodes_(step.graph.nodes), target_(target) {}

  void run() {
    if (!target_.kernels ||
        std::none_of(target_.devices.begin(), target_.devices.end(), has_memory))
      return;
    find_readers();
    std::vector<NodeId> first(nodes_.size(), kNoNode);  // by the last node
    std::vector<bool> gone(nodes_.size(), false);
    std::size_t fused = 0;
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (!can_fuse(nodes_[id])) continue;
      const NodeId bias = then(id, "BiasAdd");
      if (bias == kNoNode) continue;
      const NodeId relu = then(bias, "Relu");
      gone[id] = gone[bias] = true;
      first[relu == kNoNode ? bias : relu] = id;
      ++fused;
    }
    if (fused == 0) return;
    Rewriter out(step_);
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (first[id] != kNoNode)
        out.map(id, out.append(one_node(out, first[id], id)));
      else if (!gone[id])
        out.keep(id);
    }
    out.finish();
    step_.notes.push_back("fuse: " + std::to_string(fused) +
                          " convolutions and products take their bias");
  }

 private:
  static bool has_memory(const TargetDevice& device) { return device.space == MemorySpace::device; }

  // Who alone reads a node's output, as data; kNoNode: others do, too, or wait for it.
  void find_readers() {
    reader_.assign(nodes_.size(), kNoNode);
    std::vector<bool> seen(nodes_.size(), false);
    const auto read = [&](NodeId id, NodeId reader) {
      reader_[id] = seen[id] ? kNoNode : reader;
      seen[id] = true;
    };
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      for (const Port in : nodes_[id].inputs) read(in.node, id);
      for (const NodeId before : nodes_[id].control) read(before, kNoNode);
    }
    for (const Port fetch : step_.fetches) read(fetch.node, kNoNode);
    for (const NodeId id : step_.targets) read(id, kNoNode);
  }

  bool can_fuse(const NodeDef& node) const {
    const TakesBias* known = takes_bias(node.op);
    if (!known) return false;
    const auto device = std::find_if(
        target_.devices.begin(), target_.devices.end(),
        [&](const TargetDevice& d) { return has_memory(d) && d.name.text() == node.device; });
    return device != target_.devices.end() &&
           target_.kernels->has(known->fused, *device->name.type, node.out_types[0]);
  }

  // The node of `op` on the same device that alone reads `id`, as its first input.
  NodeId then(NodeId id, std::string_view op) const {
    const NodeId reader = reader_[id];
    if (reader == kNoNode) return kNoNode;
    const NodeDef& node = nodes_[reader];
    const bool fits =
        node.op == op && node.inputs[0].node == id && node.device == nodes_[id].device;
    return fits ? reader : kNoNode;
  }

  // Under the name of the first, at the place of `last`, where all inputs are there.
  NodeDef one_node(const Rewriter& out, NodeId first, NodeId last) const {
    NodeDef node = nodes_[first];
    const NodeId bias = reader_[first];
    node.op = takes_bias(node.op)->fused;
    node.inputs.push_back(nodes_[bias].inputs[1]);
    for (Port& in : node.inputs) in = out.port(in);
    for (NodeId part : {bias, last})
      node.control.insert(node.control.end(), nodes_[part].control.begin(),
                          nodes_[part].control.end());
    for (NodeId& before : node.control) before = out.node(before);
    node.attrs.insert_or_assign("relu", Attr(last != bias));
    node.out_shapes = nodes_[last].out_shapes;
    return node;
  }

  StepGraph& step_;
  const std::vector<NodeDef>& nodes_;
  const Target& target_;
  std::vector<NodeId> reader_;
};

}  // namespace

Status fuse(StepGraph& step, const Target& target) {
  Fuser(step, target).run();
  return ok_status();
}

}  // namespace troupe
