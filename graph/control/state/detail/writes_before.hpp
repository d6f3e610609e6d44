// The writes of variables that nodes come after.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace troupe::detail {

// The writes of each variable in a list of nodes, in order, and those that each node comes after. A
// write comes after the one before it.
class WritesBefore {
 public:
  explicit WritesBefore(const std::vector<NodeDef>& nodes) : nodes_(nodes), of_(nodes.size()) {}

  // Called in the order of nodes: finds the writes before it by its inputs and control edges.
  void visit(NodeId id);
  // The node is a write. REQUIRES: it was visited last.
  void write(NodeId id, const std::string& key);
  // The node comes after all writes so far, without writing.
  void come_after_all(NodeId id, const std::string& key);
  // The number of writes of the variable before node `id`, and the number so far.
  std::size_t before(NodeId id, const std::string& key) const;
  std::size_t count(const std::string& key) const;

 private:
  void come_after(NodeId id, NodeId other);
  std::size_t number(const std::string& key);

  const std::vector<NodeDef>& nodes_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::vector<NodeId>> writes_;     // by variable
  std::vector<std::vector<std::uint32_t>> of_;  // by node and variable; as long as needed
};

}  // namespace troupe::detail
