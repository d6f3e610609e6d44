// Knowing a graph again, in a later life of the program that builds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.hpp"
#include "graph/graph.hpp"

namespace troupe {

// The hash of a graph's first `nodes` nodes and first `functions` functions, with whole constants,
// and without source lines and devices: a job may go on with other devices. Nor does it tell a loop
// of a client's own that is open from one that is closed: a job may be saved in between.
struct GraphMark {
  std::uint64_t nodes = 0, functions = 0;
  std::uint64_t hash = 0;
  friend bool operator==(const GraphMark&, const GraphMark&) = default;
};

// Marks of a graph that grows: some 64 at each call that finds new nodes, the last at the end.
class GraphMarks {
 public:
  // REQUIRES: `graph` has only grown since the last call, and loops in it were closed.
  const std::vector<GraphMark>& of(const GraphDef& graph);

 private:
  std::vector<GraphMark> marks_;
  std::size_t functions_ = 0;  // that functions_hash_ covers; marks come with nodes only
  std::uint64_t nodes_hash_ = 0, functions_hash_ = 0;
};

// failed_precondition, with the first nodes that may be others and their lines, unless the graph
// begins as that of the marks did. Those beyond its end are not looked at. invalid_argument for
// marks that do not ascend.
Status check_marks(const GraphDef& graph, const std::vector<GraphMark>& marks);

}  // namespace troupe
