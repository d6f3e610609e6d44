// Nodes in another order.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace troupe::detail {

// Leaves the nodes of `order`, in that order. `place`: where each node comes to stand.
// REQUIRES: none takes anything of a node that is left out.
inline void reorder(std::vector<NodeDef>& nodes, const std::vector<NodeId>& order,
                    const std::vector<NodeId>& place) {
  std::vector<NodeDef> kept;
  kept.reserve(order.size());
  for (NodeId from : order) {
    NodeDef& node = kept.emplace_back(std::move(nodes[from]));
    for (Port& in : node.inputs) in.node = place[in.node];
    for (NodeId& c : node.control) c = place[c];
    std::sort(node.control.begin(), node.control.end());
  }
  nodes = std::move(kept);
}

}  // namespace troupe::detail
