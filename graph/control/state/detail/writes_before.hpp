// Which writes of variables nodes come after.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace troupe::detail {

// The writes of each variable among some nodes, in their order, and which of them each node comes
// after. A write comes after the one before it.
class WritesBefore {
 public:
  explicit WritesBefore(const std::vector<NodeDef>& nodes) : nodes_(nodes), of_(nodes.size()) {}

  // In the order of nodes: what it comes after by its inputs and control.
  void visit(NodeId id);
  // REQUIRES: it is the node visited last.
  void write(NodeId id, const std::string& key);
  // Without writing: it comes after all writes so far.
  void come_after_all(NodeId id, const std::string& key);
  // How many writes of the variable node `id` comes after, and how many there are so far.
  std::size_t before(NodeId id, const std::string& key) const;
  std::size_t count(const std::string& key) const;

 private:
  void come_after(NodeId id, NodeId other);
  std::size_t number(const std::string& key);

  const std::vector<NodeDef>& nodes_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::vector<NodeId>> writes_;     // by variable
  std::vector<std::vector<std::uint32_t>> of_;  // by node and variable; as long as need be
};

}  // namespace troupe::detail
