// Keeps only nodes that fetches and targets need, through data and control edges.
#include "graph/control/state/averages.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {

namespace {

Status keep_needed(StepGraph& step, const Target& target) {
  const auto& nodes = step.graph.nodes;
  std::vector<bool> needed(nodes.size(), false);
  std::vector<NodeId> open;
  auto need = [&](NodeId id) {
    if (needed[id]) return;
    needed[id] = true;
    open.push_back(id);
  };
  for (Port fetch : step.fetches) need(fetch.node);
  for (NodeId id : step.targets) need(id);
  while (!open.empty()) {
    NodeId id = open.back();
    open.pop_back();
    for (Port in : nodes[id].inputs) need(in.node);
    for (NodeId c : nodes[id].control) need(c);
  }

  std::size_t kept = 0;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (!needed[id]) continue;
    if (role_of(nodes[id], *target.ops) == Role::placeholder && nodes[id].op != kFeedOp)
      return in_node(
          invalid_argument("placeholder '" + nodes[id].name + "' is needed and must be fed"),
          nodes[id]);
    ++kept;
  }
  if (kept == nodes.size()) return ok_status();
  step.notes.push_back("prune: kept " + std::to_string(kept) + " of " +
                       std::to_string(nodes.size()) + " nodes");
  Rewriter out(step);
  for (NodeId id = 0; id < nodes.size(); ++id)
    if (needed[id]) out.keep(id);
  out.finish();
  return ok_status();
}

}  // namespace

Status prune(StepGraph& step, const Target& target) {
  TROUPE_TRY(keep_needed(step, target));
  leave_out_averages(step, *target.ops);
  return ok_status();
}

}  // namespace troupe
