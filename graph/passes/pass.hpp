// What a pass works on, and the passes. For pass authors: one file and one line in compile.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "graph/compile.hpp"
#include "graph/graph.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// One compiled step on its way: what the client asked for, as ports of the graph. A value; a pass
// takes one and leaves one. What holds before and after each pass:
//   - an input or a control input names an earlier node, but for back edges into Merge;
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

// Ops that only the compile path makes. No client can: an underscore does not start an op's name.
inline constexpr std::string_view kFeedOp = "_Feed";  // never a node of a plan, only a slot
inline constexpr std::string_view kSendOp = "_Send";  // one input, or none: then only "it is done"
inline constexpr std::string_view kRecvOp = "_Recv";
inline constexpr std::string_view kCopyOp = "_Copy";  // between memory spaces of one device

// A loop between the two (graph/control/frames.hpp): inputs the first predicate, the first values
// of variables, invariants; outputs the variables and invariants of an iteration.
inline constexpr std::string_view kLoopBodyOp = "_LoopBody";
// Inputs the next predicate and the next values; outputs the last values.
inline constexpr std::string_view kLoopNextOp = "_LoopNext";
// Hands the predicate on, after its control inputs; of a loop over several devices.
inline constexpr std::string_view kLoopCondOp = "_LoopCond";
// Of a _LoopBody: how many iterations may be under way. Of a node in a loop: a node of another
// device that comes after it does so that many iterations later.
inline constexpr std::string_view kWindowAttr = "window";
inline constexpr std::string_view kLagAttr = "_lag";
// A function that calls itself between the first two (graph/control/recursion.hpp): inputs the
// arguments of the call from outside, outputs those of a call; inputs the results of a call,
// outputs those of the call from outside. The third is a call inside. Attribute "function": which
// one of those that call each other.
inline constexpr std::string_view kFunctionBodyOp = "_FunctionBody";
inline constexpr std::string_view kFunctionReturnOp = "_FunctionReturn";
inline constexpr std::string_view kInvokeOp = "_Invoke";
// Beside a loop and the one that goes back over its iterations: a list with a value pushed onto it
// that may be dead, and such a list without its last entry, and that.
inline constexpr std::string_view kKeepOp = "_Keep";
inline constexpr std::string_view kKeptOp = "_Kept";

// The definition behind a node. REQUIRES: a node of a Step.
const OpInfo& op_of(const NodeDef& node, const OpRegistry& ops);
inline Role role_of(const NodeDef& node, const OpRegistry& ops) {
  return op_of(node, ops).def.role;
}
inline bool is_handle(Role role) { return role == Role::handle; }
bool is_loop_role(Role role);  // enter, exit, next_iteration, loop_cond
// How many leading inputs of `node` are handles.
std::size_t handle_inputs(const GraphDef& graph, const NodeDef& node);
// The argument (of op.in or op.out) that a flat input or output belongs to.
const ArgSpec& input_arg(const OpInfo& op, const NodeDef& node, std::size_t flat);
const ArgSpec& output_arg(const OpInfo& op, const NodeDef& node, std::size_t flat);
// A resource is what its kind, container and name say; several handle nodes may mean the same.
std::string resource_name(const NodeDef& handle);  // shared_name, or the node's name
std::string resource_key(const NodeDef& handle, const OpRegistry& ops);
// The name without the suffix that replication gave it: what keys random numbers.
std::string original_name(const NodeDef& node);
std::string replica_name(std::string_view name, std::int32_t replica);
// `status` with "in node 'x'" and the line that created the node.
Status in_node(const Status& status, const NodeDef& node);

// Writes a new node list beside the old one and keeps track of where each port went. A node that
// was kept has moved: the new list has it, the old one no more. `finish` puts the new list into the
// step, fetches and targets included.
class Rewriter {
 public:
  explicit Rewriter(StepGraph& step)
      : step_(step), ports_(step.graph.nodes.size()), nodes_(step.graph.nodes.size(), kNoNode) {
    out_.nodes.reserve(step.graph.nodes.size());
  }
  // Appends `node`, whose inputs and control are already in new numbers.
  NodeId append(NodeDef node);
  // Moves old node `id` to the end, with its inputs and control in new numbers, and maps its ports.
  NodeId keep(NodeId id);
  // More control inputs for a new node, from nodes before it.
  void add_control(NodeId new_id, const std::vector<NodeId>& control);
  void map(NodeId old_id, NodeId new_id);       // all ports, control and targets
  void map_port(Port old_port, Port new_port);  // one port; Port{} takes that back
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

// Attribute of reads and writes once order_writes has run: PlanInfo::epoch.
inline constexpr std::string_view kEpochAttr = "_epoch";
std::uint32_t epoch_of(const NodeDef& node);
// Of writes in branches, once they are replicated. Replicas that do not take the branch leave the
// write out; and what none of them contributes anything of its own to counts once.
inline constexpr std::string_view kSomeReplicasAttr = "_some_replicas";
inline constexpr std::string_view kCombineFirstAttr = "_combine_first";

// The stages, in the order of compile.cpp.
Expected<StepGraph> feed_and_fetch(const GraphDef& graph, const CompileRequest& request,
                                   const OpRegistry& ops);
Status prune(StepGraph& step, const Target& target);
Status fold(StepGraph& step, const Target& target);
Status cse(StepGraph& step, const Target& target);
// Control edges between unordered writes of one variable, in node order; checks of handles.
Status order_writes(StepGraph& step, const Target& target);
// The end of placement: copies of the small constants for which `free` holds go to the devices that
// read them.
void spread_constants(StepGraph& step, const std::vector<bool>& free, const Target& target);

}  // namespace troupe
