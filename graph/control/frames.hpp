// Which nodes of a lowered step a loop repeats.
#pragma once

#include <cstdint>
#include <vector>

#include "troupe/core/status.hpp"
#include "troupe/graph/passes/pass.hpp"

namespace troupe {

// A loop is a pair of nodes, _LoopBody and _LoopNext. Its frame is what depends on the former, up
// to the latter; everything from outside comes in through the former, all results leave through the
// latter. Frame 0 is the step.
struct Frames {
  struct Frame {
    std::uint32_t parent = 0;  // a frame before it
    NodeId body = kNoNode, next = kNoNode;
  };
  std::vector<Frame> frames;           // in the order of their bodies
  std::vector<std::uint32_t> of_node;  // the innermost frame; _LoopBody and _LoopNext are inside
  // Where the outputs of a node are: those of a _LoopNext in the frame around it.
  std::uint32_t of_outputs(NodeId id) const {
    const std::uint32_t f = of_node[id];
    return f != 0 && frames[f].next == id ? frames[f].parent : f;
  }
};

// invalid_argument, naming the node, for a loop that is none: a node that takes something from a
// frame beside or outside of its own.
Expected<Frames> find_frames(const GraphDef& graph, const OpRegistry& ops);

}  // namespace troupe
