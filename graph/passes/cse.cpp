// One node for many that compute the same (requirements A-13).
#include <algorithm>
#include <unordered_map>

#include "core/hash.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

bool mergeable(const NodeDef& node, const OpDef& op) {
  return op.role == Role::kernel && !op.stateful && !op.random && !node.out_types.empty();
}

std::uint64_t hash_of(const NodeDef& node) {
  std::uint64_t h = hash_text(node.op, hash_text(node.device));
  for (Port in : node.inputs) h = hash_combine(hash_combine(h, in.node), in.index);
  for (NodeId c : node.control) h = hash_combine(h, c);
  for (const auto& [name, value] : node.attrs)
    h = hash_combine(hash_text(name, h), hash_text(value.text()));
  return h;
}

// REQUIRES: inputs in canonical order, control sorted.
bool same(const NodeDef& a, const NodeDef& b) {
  return a.op == b.op && a.inputs == b.inputs && a.control == b.control && a.attrs == b.attrs &&
         a.device == b.device && a.colocate == b.colocate && a.out_types == b.out_types;
}

}  // namespace

Status cse(Step& step, const Target& target) {
  const auto& nodes = step.graph.nodes;
  // All candidates of a hash are kept: a collision must not lose a merge or make a wrong one.
  std::unordered_map<std::uint64_t, std::vector<std::pair<NodeDef, NodeId>>> seen;
  std::size_t merged = 0;
  Rewriter out(step);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const OpDef& op = op_of(nodes[id], *target.ops).def;
    if (!mergeable(nodes[id], op)) {
      out.keep(id);
      continue;
    }
    const NodeId kept = out.keep(id);
    NodeDef key = out.graph().nodes[kept];
    if (op.commutative && key.inputs.size() == 2 && key.inputs[1] < key.inputs[0])
      std::swap(key.inputs[0], key.inputs[1]);
    auto& candidates = seen[hash_of(key)];
    auto twin = std::find_if(candidates.begin(), candidates.end(),
                             [&](const auto& c) { return same(c.first, key); });
    if (twin == candidates.end()) {
      candidates.emplace_back(std::move(key), kept);
      continue;
    }
    out.map(id, twin->second);  // the twin of the first stays without readers: pruned next
    ++merged;
  }
  if (merged > 0) step.notes.push_back("cse: merged " + std::to_string(merged) + " nodes");
  out.finish();
  return ok_status();
}

}  // namespace troupe
