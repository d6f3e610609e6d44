// The data of passes, and the passes. A new pass is one file and one line in compile.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "graph/node_query.hpp"
#include "graph/op_registry.hpp"
#include "graph/request.hpp"

namespace troupe {

// One step during compilation: the request, as ports of the graph. A value, which passes change.
// Before and after each pass:
//   - an input or a control input names an earlier node, except back edges into Merge;
//   - names are unique; every op is known to `op_of`;
//   - a fed port is output 0 of a node of op kFeedOp (attribute "feed": index in the request);
//   - handles (Role::handle) have no control edges.
struct StepGraph {
  GraphDef graph;
  std::vector<Port> fetches;  // in the order of the request; may repeat
  std::vector<NodeId> targets;
  std::int32_t replicas = 1;
  std::vector<std::string> notes;
};

// Writes a new node list next to the old one and maps old ports to new ones. A node that is kept is
// moved out of the old list. `finish` puts the new list into the step, and updates fetches and
// targets.
class Rewriter {
 public:
  explicit Rewriter(StepGraph& step)
      : step_(step), ports_(step.graph.nodes.size()), nodes_(step.graph.nodes.size(), kNoNode) {
    out_.nodes.reserve(step.graph.nodes.size());
  }
  // Appends `node`, whose inputs and control use new numbers.
  NodeId append(NodeDef node);
  // Moves old node `id` to the end, translates its inputs and control, and maps its ports.
  NodeId keep(NodeId id);
  // Adds control inputs to a new node, from earlier nodes.
  void add_control(NodeId new_id, const std::vector<NodeId>& control);
  void map(NodeId old_id, NodeId new_id);       // all ports, control and targets
  void map_port(Port old_port, Port new_port);  // one port; Port{} undoes it
  bool has(NodeId old_id) const { return nodes_[old_id] != kNoNode; }
  NodeId node(NodeId old_id) const { return nodes_[old_id]; }
  Port port(Port old_port) const;
  const GraphDef& graph() const { return out_; }
  // A new node, to be changed.
  NodeDef& edit(NodeId new_id) { return out_.nodes[new_id]; }
  // REQUIRES: every fetch and target is mapped.
  void finish();

 private:
  StepGraph& step_;
  GraphDef out_;
  std::vector<std::vector<Port>> ports_;  // overrides by map_port; else node + index
  std::vector<NodeId> nodes_;
  std::vector<std::pair<NodeId, std::size_t>> late_;  // back edges to patch: (new node, input)
};

// Stages, in the order of compile.cpp. The first one is in feeds.hpp.
Status prune(StepGraph& step, const Target& target);
Status fold(StepGraph& step, const Target& target);
Status cse(StepGraph& step, const Target& target);
// Adds control edges between unordered writes of one variable, in node order; checks handles.
Status order_writes(StepGraph& step, const Target& target);
// After placement: a convolution or a product of matrices, its bias and Relu become one node where
// nothing else reads what is between them, on devices with memory of their own that have a kernel
// for it.
Status fuse(StepGraph& step, const Target& target);
// The last part of placement: copies small constants that are `free` to the devices that read them.
void spread_constants(StepGraph& step, const std::vector<bool>& free, const Target& target);
// Before that: sets kOnHostAttr on nodes of devices with their own memory that compute integers
// from values in host memory: from shapes, or from data if only the host reads the result. A `free`
// one on a CPU moves to the device whose shapes it uses.
void keep_on_host(StepGraph& step, const std::vector<bool>& free, const Target& target);
// After it: sets kOnHostAttr on constants that a device reads only in host memory.
void keep_constants_on_host(StepGraph& step, const Target& target);

}  // namespace troupe
