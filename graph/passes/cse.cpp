// Common subexpression elimination: merges nodes that compute the same (paper, section 5.1).
#include "graph/detail/equal_nodes.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

bool mergeable(const NodeDef& node, const OpDef& op) {
  return op.role == Role::kernel && !op.stateful && !op.random && !node.out_types.empty();
}

}  // namespace

Status cse(StepGraph& step, const Target& target) {
  const auto& nodes = step.graph.nodes;
  std::size_t merged = 0;
  Rewriter out(step);
  detail::EqualNodes seen(out.graph());
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const OpDef& op = op_of(nodes[id], *target.ops).def;
    const bool candidate = mergeable(nodes[id], op);
    const NodeId kept = out.keep(id);
    const NodeId twin = candidate ? seen.find_or_add(kept, op.commutative) : kNoNode;
    if (twin == kNoNode) continue;
    out.map(id, twin);  // the kept copy has no readers and is pruned next
    ++merged;
  }
  if (merged > 0) step.notes.push_back("cse: merged " + std::to_string(merged) + " nodes");
  out.finish();
  return ok_status();
}

}  // namespace troupe
