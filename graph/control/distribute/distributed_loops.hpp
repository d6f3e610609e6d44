// Loops over several devices: each gets a part of its own (paper, section 4.4).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/control/lowering/frames.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {

// The part of a loop that one device has.
struct LoopPart {
  NodeId begin = kNoNode, next = kNoNode;
};

// Which nodes belong to loops on several devices, for who cuts the step.
struct DistributedLoops {
  // By node: the loop in whose iterations its outputs are; 0: none of these.
  std::vector<std::uint32_t> of_node;
  // By loop, the leader first; loop 0 has none. The `next` of one loop stand side by side.
  std::vector<std::vector<LoopPart>> parts;
};

// Gives each device that has nodes of a loop a _LoopBody and a _LoopNext of its own, with the
// variables and invariants that its nodes read. A loop on one device stays as it is.
//
//   leader    predicate --> _LoopCond ---> _LoopNext         one more of what its nodes read,
//                  ControlTrigger |^                         of each part, by its own _LoopBody
//   another    of the iteration --|'
//                                 '------> _LoopNext
//
// The leader is where the loop was placed. It tells the other parts the predicate of the next
// iteration, once they are done with that `window` iterations before: no part is further ahead of
// another, so that a channel holds so many tensors at most. A variable is carried by those who read
// it, its last value by who makes it. After it edges lead from one part of a loop to another;
// partition cuts them.
//
// REQUIRES: nodes are placed; `frames` are those of the step.
DistributedLoops distribute_loops(StepGraph& step, const Frames& frames, const OpRegistry& ops);

}  // namespace troupe
