// The frames of a lowered step: the nodes that loops repeat and functions contain.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "graph/node_query.hpp"

namespace troupe {

// A loop is a pair of nodes, _LoopBody and _LoopNext. Its frame contains all nodes from the former
// to the latter; values from outside enter through the former, results leave through the latter.
// Frame 0 is the step.
//
// A recursive function is also such a pair, _FunctionBody and _FunctionReturn. If several functions
// call each other, the frame of the one called from outside contains the others' frames.
struct Frames {
  struct Frame {
    std::uint32_t parent = 0;  // a frame before it
    NodeId body = kNoNode, next = kNoNode;
    // For a function: the frame of the function called from outside, and its number in that frame.
    std::uint32_t leader = 0, function = 0;
    bool is_function() const { return leader != 0; }
  };
  // The frame of the function that a node of role invoke calls. REQUIRES: there is one.
  std::uint32_t called_by(NodeId id, std::uint32_t function) const;
  // By leader and number.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> functions;
  std::vector<Frame> frames;           // in the order of their bodies
  std::vector<std::uint32_t> of_node;  // the innermost frame; _LoopBody and _LoopNext are inside
  // The frame of a node's outputs: for a _LoopNext the frame around its own.
  std::uint32_t of_outputs(NodeId id) const {
    const std::uint32_t f = of_node[id];
    return f != 0 && frames[f].next == id ? frames[f].parent : f;
  }
};

// For a _FunctionBody or an _Invoke: the number of its function in the leader's frame.
std::uint32_t function_number(const NodeDef& node);

// invalid_argument, naming the node, for invalid loops: a node that takes a value from a frame that
// is not its own.
Expected<Frames> find_frames(const GraphDef& graph, const OpRegistry& ops);

// unimplemented, naming the node, for a recursive function on several devices. REQUIRES: nodes are
// placed.
Status functions_on_one_device(const GraphDef& graph, const Frames& frames, const OpRegistry& ops);

}  // namespace troupe
