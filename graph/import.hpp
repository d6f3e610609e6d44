// Graphs from outside. Nothing of them is believed: whatever values the nodes are, the result is a
// graph that a builder could have made, but for names that begin with a dot, or an error.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "graph/op_registry.hpp"
#include "graph/passes/shape_inference.hpp"

namespace troupe {

// A graph that grows by nodes from outside, at the cost of the new nodes. One owner; neither copies
// nor moves. The registry outlives it.
class GraphImport {
 public:
  explicit GraphImport(const OpRegistry& registry, std::uint64_t seed = 0) : registry_(registry) {
    graph_.seed = seed;
  }
  GraphImport(const GraphImport&) = delete;
  GraphImport& operator=(const GraphImport&) = delete;

  const GraphDef& graph() const { return graph_; }
  GraphDef take() && { return std::move(graph_); }

  // Appends nodes, in an order in which each comes after what it needs. Their inputs and control
  // edges name nodes by their places in the whole graph, as if they were appended as they stand.
  // The functions come first; they may call each other in any order. An error names the function
  // and the node, and leaves the graph as it was. Memory stays in proportion to what the nodes take
  // as they come.
  Status extend(std::vector<NodeDef> nodes, std::vector<FunctionDef> functions = {});
  // True while nodes stand where those who sent them count them.
  bool in_order() const { return in_order_; }

 private:
  class Extension;
  // Bytes, of one extension with all its functions.
  struct Made {
    std::size_t given = 0, made = 0;
  };
  Status add_functions(std::vector<FunctionDef> functions);
  Status check_body(FunctionDef& function) const;
  const FunctionDef* function(std::string_view name) const;
  const OpRegistry& registry_;
  GraphDef graph_;
  std::vector<const OpInfo*> ops_;  // parallel to the nodes
  std::unordered_map<std::string, NodeId> by_name_;
  std::unordered_map<NodeId, std::vector<KnownValue>> known_;  // by output
  std::unordered_map<std::string, std::size_t> functions_;     // places by name
  const GraphImport* around_ = nullptr;                        // of a body: where the functions are
  Made* counted_ = nullptr;                                    // while it is extended
  std::size_t ports_ = 0;
  bool in_order_ = true;
};

// Checks a graph that came from outside (the wire, a file): names, ops, attributes, inputs, types,
// cycles; fills in types, shapes and defaults. Errors name the node. The result is what a builder
// would have made.
Expected<GraphDef> import_graph(GraphDef graph, const OpRegistry& registry);

}  // namespace troupe
