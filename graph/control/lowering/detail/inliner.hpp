// Inlines functions.
#pragma once

#include <string>
#include <vector>

#include "graph/control/lowering/detail/branches.hpp"
#include "graph/control/lowering/detail/budget.hpp"
#include "graph/control/lowering/detail/call_lowering.hpp"
#include "graph/control/lowering/detail/call_records.hpp"
#include "graph/control/lowering/detail/function_table.hpp"
#include "graph/control/lowering/detail/loops.hpp"
#include "graph/control/lowering/detail/queue_order.hpp"
#include "graph/control/lowering/detail/recursive_calls.hpp"
#include "graph/control/lowering/detail/saved_values.hpp"
#include "graph/control/lowering/detail/shape_checks.hpp"
#include "graph/control/lowering/detail/step_writer.hpp"

namespace troupe::detail {

// Copies the nodes of functions into a step, node by node. Each part of lowering with its own state
// is a class. Lives for one pass over a step, as long as the functions and the Rewriter.
//
//   Inliner <--> CallLowering --> RecursiveCalls --> SavedValues --> CallRecords
//      |           |      |              |              |               |
//   QueueOrder   Branches LoopNodes  ShapeChecks      Loops <-----------'
//      |           |      |              |              |
//      '-----------+------+--------------+--> StepWriter         Budget --> FunctionTable
class Inliner {
 public:
  Inliner(const std::vector<FunctionDef>& functions, const OpRegistry& ops, Rewriter& out);
  Inliner(const Inliner&) = delete;
  Inliner& operator=(const Inliner&) = delete;

  // Sets the size limit for the calls among these nodes, see Budget. Called first.
  Status check_size(const std::vector<NodeDef>& nodes) { return budget_.check_size(nodes); }
  // Makes the nodes of the pass. The caller reserves the names of nodes that stay.
  StepWriter& writer() { return out_; }

  // Lowers a call of the step, see CallLowering.
  Expected<Lowered> lower(const NodeDef& call, const std::vector<Value>& inputs, Place place,
                          bool wants_done) {
    return calls_.lower(call, inputs, std::move(place), wants_done);
  }
  // The value of a node of role `saved` outside all functions, see SavedValues.
  Expected<Value> saved(const NodeDef& node, const Value& handle) {
    return saved_.find(node, handle, 0);
  }

  // Called once everything is lowered: the loops with more variables, see Loops, and whether calls
  // have records, see CallRecords.
  Loops::Moved settle_variables() { return loops_.settle(); }
  Expected<bool> settle_records() { return records_.settle(budget_); }

 private:
  Expected<Inlined> inline_function(const FunctionDef& f, const std::vector<Value>& arguments,
                                    const Place& place);
  Status bind_arguments(Inlined& in, const std::vector<Value>& arguments, const Place& place);
  Status check_handle(const FunctionDef& f, const NodeDef& argument, const Value& value) const;
  Status bind_results(Inlined& in, const Place& place);
  Status inline_body_node(Inlined& in, NodeId id, const Place& place, bool followed);
  Status inline_node(Inlined& in, NodeId id, const Place& place);
  Status inline_call(Inlined& in, NodeId id, const Place& place, bool wants_done);
  bool take_constant(Inlined& in, NodeId id, const Place& place) const;
  Status check_node(const NodeDef& node, const FunctionDef& f, const Place& place) const;
  std::vector<NodeId> control_of(const Inlined& in, const NodeDef& node) const;
  void locate(NodeDef& node, const Inlined& in, const Place& place);
  Status locate_node(NodeDef& node, const NodeDef& body, const Inlined& in, const Place& place);
  NodeId maker_of_list(const NodeDef& node) const;

  const OpRegistry& ops_;
  FunctionTable functions_;
  Budget budget_;
  StepWriter out_;
  ShapeChecks shapes_;
  Branches branches_;
  Loops loops_;
  QueueOrder queues_;
  CallRecords records_;
  SavedValues saved_;
  RecursiveCalls recursive_;
  CallLowering calls_;
};

}  // namespace troupe::detail
