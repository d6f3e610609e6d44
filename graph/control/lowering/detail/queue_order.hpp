// The order in which an iteration asks queues.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "graph/control/lowering/detail/loops.hpp"

namespace troupe::detail {

// What a loop or a function asks of one queue on one branch, it asks in the order of its nodes;
// this adds the control edges for that. A loop asks iteration by iteration, since the number of the
// iteration is a part of each request. Lives for one pass over a step.
class QueueOrder {
 public:
  QueueOrder(StepWriter& out, const Loops& loops) : out_(out), loops_(loops) {}

  // unimplemented, naming the node, for what a loop cannot ask. REQUIRES: an external op in one.
  Status check(const NodeDef& node, const Place& place) const;
  // The queues that the branches or the loop of a call may ask in an iteration. They take one place
  // in the order. What a function asks takes places of its own, unless its nodes are `apart`, as
  // those of a branch are.
  std::vector<NodeId> queues_of(const NodeDef& call, const std::vector<Value>& inputs,
                                bool apart) const;
  // Makes the node come after what asked the queue last at that place.
  void come_after_last(NodeDef& node, NodeId queue, const Place& place) const;
  // From now on `ends` are what asked the queue last.
  void asked(NodeId queue, const Place& place, std::vector<NodeId> ends);

 private:
  StepWriter& out_;
  const Loops& loops_;
  // By frame, handle of a queue and pivot of the branch: the node that asks it last, or the ends of
  // the branches or the loop that do.
  std::map<std::tuple<std::uint32_t, NodeId, NodeId>, std::vector<NodeId>> last_;
};

}  // namespace troupe::detail
