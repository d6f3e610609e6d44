#include "graph/detail/equal_nodes.hpp"

#include <algorithm>

#include "graph/node_hash.hpp"

namespace troupe::detail {
namespace {

bool swapped(const NodeDef& node, bool commutative) {
  return commutative && node.inputs.size() == 2 && node.inputs[1] < node.inputs[0];
}

bool same(const NodeDef& a, bool swap_a, const NodeDef& b, bool swap_b) {
  const bool inputs = swap_a == swap_b ? a.inputs == b.inputs
                                       : std::equal(a.inputs.begin(), a.inputs.end(),
                                                    b.inputs.rbegin(), b.inputs.rend());
  return a.op == b.op && inputs && a.control == b.control && a.device == b.device &&
         a.colocate == b.colocate && a.out_types == b.out_types && a.attrs == b.attrs;
}

}  // namespace

NodeId EqualNodes::find_or_add(NodeId id, bool commutative) {
  const NodeDef& node = graph_.nodes[id];
  const bool swap = swapped(node, commutative);
  std::vector<NodeId>& candidates = by_hash_[hash_of_computation(node, swap) & hash_bits_];
  for (NodeId other : candidates) {
    ++compared_;
    const NodeDef& known = graph_.nodes[other];
    if (same(known, swapped(known, commutative), node, swap)) return other;
  }
  // So many by chance there never are. Who makes them collide gets them computed one by one.
  if (candidates.size() < kMostOfOneHash) candidates.push_back(id);
  return kNoNode;
}

}  // namespace troupe::detail
