// Copies of nodes with new numbers.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "graph/graph.hpp"
#include "graph/unique_names.hpp"

namespace troupe::detail {

// Makes a list of nodes from another one: copies, whose inputs and control edges use the new
// numbers, and nodes that replace or accompany them. The old list is not changed, and outlives
// this.
class NodeCopies {
 public:
  explicit NodeCopies(const std::vector<NodeDef>& from) : from_(from) {}

  // Reserves the names of all old nodes until they are replaced.
  void reserve_names();
  // Appends a node whose inputs use new numbers, and returns its number. Makes its name unique and
  // sorts its control edges.
  NodeId append(NodeDef node);
  // A copy of old node `id` with new numbers, to be appended. REQUIRES: its inputs are mapped.
  NodeDef moved(NodeId id) const;
  // Appends `node` in place of old node `id`, and may use its name.
  NodeId replace(NodeId id, NodeDef node);

  // Maps an old node or port to a new one.
  void map(NodeId from, NodeId to) { nodes_.insert_or_assign(from, to); }
  void map_port(Port from, Port to) { ports_[from] = to; }
  // The new node for an old one; kNoNode if there is none.
  NodeId node(NodeId id) const;
  // The new port for an old one: the port that it was mapped to, or that of its node.
  Port port(Port from) const;
  // The new nodes of these old ones, where they exist.
  std::vector<NodeId> nodes(const std::vector<NodeId>& some) const;

  const NodeDef& made(NodeId id) const { return made_[id]; }
  const std::vector<NodeDef>& made() const { return made_; }
  DType dtype(Port made) const { return made_[made.node].out_types[made.index]; }
  std::vector<NodeDef> take() { return std::move(made_); }

 private:
  const std::vector<NodeDef>& from_;
  std::vector<NodeDef> made_;
  std::unordered_map<NodeId, NodeId> nodes_;  // sparse: a function may use few of many nodes
  std::map<Port, Port> ports_;
  UniqueNames names_;
};

}  // namespace troupe::detail
