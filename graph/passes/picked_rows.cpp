#include "graph/passes/picked_rows.hpp"

#include "graph/node_query.hpp"

namespace troupe {

NodeId picks_rows_of(const GraphDef& graph, const NodeDef& node, const OpRegistry& ops) {
  constexpr std::int64_t kLarge = 1 << 16;
  if ((node.op != "Gather" && node.op != "GatherNd") || node.inputs.empty()) return kNoNode;
  const Port from = node.inputs[0];
  const NodeDef& read = graph.nodes[from.node];
  const OpInfo* op = ops.find(read.op);
  if (op == nullptr || !op->is(External::Order::read)) return kNoNode;
  const PartialShape &all = read.out_shapes[from.index], &picked = node.out_shapes[0];
  if (!all.fully_known()) return kNoNode;
  const std::int64_t elements = all.shape().elements();
  const bool less =
      picked.fully_known() ? picked.shape().elements() < elements : elements >= kLarge;
  return less ? from.node : kNoNode;
}

}  // namespace troupe
