// Copies of nodes under new numbers.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "graph/graph.hpp"
#include "graph/unique_names.hpp"

namespace troupe::detail {

// Makes one list of nodes from another one: copies of nodes, whose inputs and control edges are in
// new numbers then, and nodes that take their place or stand beside them. The old list stays as it
// is. Lives as long as that.
class NodeCopies {
 public:
  explicit NodeCopies(const std::vector<NodeDef>& from) : from_(from) {}

  // Keeps the names of all old nodes from being given to others, until they are replaced.
  void reserve_names();
  // Appends a node in new numbers, and returns its own. Makes its name unique and sorts its control
  // edges.
  NodeId append(NodeDef node);
  // A copy of old node `id` in new numbers, to be appended. REQUIRES: what it takes is mapped.
  NodeDef moved(NodeId id) const;
  // Appends `node` in the place of old node `id`, whose name is free for it.
  NodeId replace(NodeId id, NodeDef node);

  // From now on the new node or port stands for the old one.
  void map(NodeId from, NodeId to) { nodes_.insert_or_assign(from, to); }
  void map_port(Port from, Port to) { ports_[from] = to; }
  // The new node that stands for an old one; kNoNode if there is none.
  NodeId node(NodeId id) const;
  // The new port that stands for an old one: the one that it was mapped to, or that of its node.
  Port port(Port from) const;
  // The new nodes of these old ones, without those that have none.
  std::vector<NodeId> nodes(const std::vector<NodeId>& some) const;

  const NodeDef& made(NodeId id) const { return made_[id]; }
  const std::vector<NodeDef>& made() const { return made_; }
  DType dtype(Port made) const { return made_[made.node].out_types[made.index]; }
  std::vector<NodeDef> take() { return std::move(made_); }

 private:
  const std::vector<NodeDef>& from_;
  std::vector<NodeDef> made_;
  std::unordered_map<NodeId, NodeId> nodes_;  // a function may take a few of many nodes
  std::map<Port, Port> ports_;
  UniqueNames names_;
};

}  // namespace troupe::detail
