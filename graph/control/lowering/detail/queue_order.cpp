#include "graph/control/lowering/detail/queue_order.hpp"

#include "graph/control/state/state_ops.hpp"

namespace troupe::detail {
namespace {

// The most loops around a queue request: its key contains their iteration numbers.
constexpr std::size_t kDeepestAsking = 8;

// Requests to mutexes are ordered like those to queues.
bool in_order(const OpDef& op) {
  return op.external.resource == "queue" || op.external.resource == "mutex";
}

}  // namespace

Status QueueOrder::check(const NodeDef& node, const Place& place) const {
  if (node.op == kElementAtOp) return ok_status();
  if (!in_order(op_of(node, out_.ops()).def))
    return in_node(unimplemented(node.op + " in a loop: what asks for files stands outside of "
                                           "loops"),
                   node);
  if (loops_.depth(place.frame) > kDeepestAsking)
    return in_node(unimplemented(node.op + " in loops in loops, more than " +
                                 std::to_string(kDeepestAsking) + " deep"),
                   node);
  return ok_status();
}

std::vector<NodeId> QueueOrder::queues_of(const NodeDef& call, const std::vector<Value>& inputs,
                                          bool apart) const {
  std::vector<NodeId> queues;
  if (call.op == "Call" && !apart) return queues;
  for (const Value& value : inputs) {
    if (value.run != kNoRun) continue;
    const OpDef& op = op_of(out_.node(value.port.node), out_.ops()).def;
    if (is_handle(op.role) && in_order(op)) queues.push_back(value.port.node);
  }
  return queues;
}

void QueueOrder::come_after_last(NodeDef& node, NodeId queue, const Place& place) const {
  if (const auto at = last_.find({place.frame, queue, place.pivot}); at != last_.end())
    node.control.insert(node.control.end(), at->second.begin(), at->second.end());
}

void QueueOrder::asked(NodeId queue, const Place& place, std::vector<NodeId> ends) {
  last_[{place.frame, queue, place.pivot}] = std::move(ends);
}

}  // namespace troupe::detail
