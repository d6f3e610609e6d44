// Loops over several devices: each device gets its own part (paper, section 4.4).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/control/lowering/frames.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {

// One device's part of a loop.
struct LoopPart {
  NodeId begin = kNoNode, next = kNoNode;
};

// The nodes in loops on several devices, for partitioning.
struct DistributedLoops {
  // By node: the loop whose iterations have its outputs; 0: none of these loops.
  std::vector<std::uint32_t> of_node;
  // By loop, the leader first; loop 0 has none. The `next` nodes of a loop are adjacent.
  std::vector<std::vector<LoopPart>> parts;
};

// Gives each device with nodes of a loop its own _LoopBody and _LoopNext, with the variables and
// invariants that its nodes read. A loop on one device is not changed.
//
//   leader    predicate --> _LoopCond ---> _LoopNext         each part has its own _LoopBody,
//                  ControlTrigger |^                         with the values that its nodes read
//   another    of the iteration --|'
//                                 '------> _LoopNext
//
// The leader is on the device where the loop was placed. It sends the other parts the predicate of
// the next iteration when they have finished the iteration `window` before it: so no part is
// further ahead of another, and a channel holds at most `window` tensors. A variable is in all
// parts that read it; its last value is in the part that makes it. The new edges between parts of a
// loop are cut by partition.
//
// REQUIRES: nodes are placed; `frames` are those of the step.
DistributedLoops distribute_loops(StepGraph& step, const Frames& frames, const OpRegistry& ops);

}  // namespace troupe
