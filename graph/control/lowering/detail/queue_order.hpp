// The order of queue requests in an iteration.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "graph/control/lowering/detail/loops.hpp"

namespace troupe::detail {

// Adds control edges so that requests of a loop or function to one queue on one branch are made in
// the order of its nodes. Requests of different iterations are in order because each contains its
// iteration's number. Lives for one pass over a step.
class QueueOrder {
 public:
  QueueOrder(StepWriter& out, const Loops& loops) : out_(out), loops_(loops) {}

  // unimplemented, naming the node, for a request not possible in a loop. REQUIRES: an external op.
  Status check(const NodeDef& node, const Place& place) const;
  // The queues that branches or the loop of a call may use in an iteration; these take one place in
  // the order. Requests of a function take their own places, unless its nodes are `apart`, like
  // those of a branch.
  std::vector<NodeId> queues_of(const NodeDef& call, const std::vector<Value>& inputs,
                                bool apart) const;
  // Makes the node come after the last request to the queue at that place.
  void come_after_last(NodeDef& node, NodeId queue, const Place& place) const;
  // `ends` are now the last requests to the queue.
  void asked(NodeId queue, const Place& place, std::vector<NodeId> ends);

 private:
  StepWriter& out_;
  const Loops& loops_;
  // By frame, queue handle and pivot of the branch: the node with the last request, or the ends of
  // the branches or the loop that contain it.
  std::map<std::tuple<std::uint32_t, NodeId, NodeId>, std::vector<NodeId>> last_;
};

}  // namespace troupe::detail
