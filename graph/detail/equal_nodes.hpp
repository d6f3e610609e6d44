// Which nodes of a graph compute the same from the same.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "graph/graph.hpp"

namespace troupe::detail {

// Nodes by everything that decides what they compute: op, inputs, control, attributes with the
// whole contents of tensors, device and colocation. Looking one up costs what reading it costs,
// also in a graph that was made to collide. Lives for one pass over `graph`, to which nodes may be
// appended meanwhile.
class EqualNodes {
 public:
  // `hash_bits`: those of the hash that are used; a test takes fewer than there are.
  explicit EqualNodes(const GraphDef& graph, std::uint64_t hash_bits = ~std::uint64_t{0})
      : graph_(graph), hash_bits_(hash_bits) {}

  // The earlier node that `id` equals; kNoNode when there is none, and then it is remembered.
  // `commutative`: the order of two inputs does not matter. REQUIRES: control is sorted.
  NodeId find_or_add(NodeId id, bool commutative);
  // Pairs of nodes that were compared.
  std::uint64_t compared() const { return compared_; }

 private:
  static constexpr std::size_t kMostOfOneHash = 16;
  const GraphDef& graph_;
  const std::uint64_t hash_bits_;
  std::unordered_map<std::uint64_t, std::vector<NodeId>> by_hash_;
  std::uint64_t compared_ = 0;
};

}  // namespace troupe::detail
