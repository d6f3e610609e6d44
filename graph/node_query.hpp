// What a node is: its op, its arguments, the resource behind it. Also the ops and attributes that
// only the compile path gives to nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// Ops that only the compile path makes. No client can: an underscore does not start an op's name.
inline constexpr std::string_view kFeedOp = "_Feed";  // never a node of a plan, only a slot
inline constexpr std::string_view kSendOp = "_Send";  // one input, or none: then only "it is done"
inline constexpr std::string_view kRecvOp = "_Recv";
inline constexpr std::string_view kCopyOp = "_Copy";  // between memory spaces of one device

// True of a node of a device with memory of its own whose outputs are in host memory all the same.
// If it has a kernel, that is the CPU's, and its inputs are there, too.
inline constexpr std::string_view kOnHostAttr = "_on_host";
inline bool on_host(const NodeDef& node) { return node.attrs.contains(kOnHostAttr); }

// A loop between the two (graph/control/lowering/frames.hpp): inputs the first predicate, the first
// values of variables, invariants; outputs the variables and invariants of an iteration.
inline constexpr std::string_view kLoopBodyOp = "_LoopBody";
// Inputs the next predicate and the next values; outputs the last values.
inline constexpr std::string_view kLoopNextOp = "_LoopNext";
// Hands the predicate on, after its control inputs; of a loop over several devices.
inline constexpr std::string_view kLoopCondOp = "_LoopCond";
// Of a _LoopBody: how many iterations may be under way. Of a node in a loop: a node of another
// device that comes after it does so that many iterations later.
inline constexpr std::string_view kWindowAttr = "window";
inline constexpr std::string_view kLagAttr = "_lag";
// A function that calls itself between the first two (graph/control/functions/recursion.hpp):
// inputs the arguments of the call from outside, outputs those of a call; inputs the results of a
// call, outputs those of the call from outside. The third is a call inside. Attribute "function":
// which one of those that call each other.
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
std::string resource_name(const NodeDef& handle);       // shared_name, or the original_name
std::string resource_container(const NodeDef& handle);  // "" is the default one
std::string resource_key(const NodeDef& handle, const OpRegistry& ops);
// The name without the suffix that replication gave it: what keys random numbers.
std::string original_name(const NodeDef& node);
std::string replica_name(std::string_view name, std::int32_t replica);
bool is_dataset(const NodeDef& node, const OpRegistry& ops);  // a handle of one
// Whether it is a replica's own handle of a dataset, in the replica's task.
bool is_replicas_dataset(const NodeDef& node, const OpRegistry& ops);
// Brings the control edges of a node into their usual form: ascending, each once.
void sort_control(NodeDef& node);
// `status` with "in node 'x'" and the line that created the node.
Status in_node(const Status& status, const NodeDef& node);

// Attribute of reads and writes once order_writes has run: PlanInfo::epoch.
inline constexpr std::string_view kEpochAttr = "_epoch";
std::uint32_t epoch_of(const NodeDef& node);
// Of writes in branches, once they are replicated. Replicas that do not take the branch leave the
// write out; and what none of them contributes anything of its own to counts once.
inline constexpr std::string_view kSomeReplicasAttr = "_some_replicas";
inline constexpr std::string_view kCombineFirstAttr = "_combine_first";

}  // namespace troupe
