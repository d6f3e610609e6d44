// Which nodes of a lowered step a loop repeats.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "graph/node_query.hpp"

namespace troupe {

// A loop is a pair of nodes, _LoopBody and _LoopNext. Its frame is what depends on the former, up
// to the latter; everything from outside comes in through the former, all results leave through the
// latter. Frame 0 is the step.
//
// A function that calls itself is such a pair, too, _FunctionBody and _FunctionReturn. Of several
// that call each other the one that is called from outside has the others' frames in its own.
struct Frames {
  struct Frame {
    std::uint32_t parent = 0;  // a frame before it
    NodeId body = kNoNode, next = kNoNode;
    // Of a function: the frame of the one called from outside, and the number among those in it.
    std::uint32_t leader = 0, function = 0;
    bool is_function() const { return leader != 0; }
  };
  // The frame of the function that a node of role invoke calls. REQUIRES: there is one.
  std::uint32_t called_by(NodeId id, std::uint32_t function) const;
  // By leader and number.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> functions;
  std::vector<Frame> frames;           // in the order of their bodies
  std::vector<std::uint32_t> of_node;  // the innermost frame; _LoopBody and _LoopNext are inside
  // Where the outputs of a node are: those of a _LoopNext in the frame around it.
  std::uint32_t of_outputs(NodeId id) const {
    const std::uint32_t f = of_node[id];
    return f != 0 && frames[f].next == id ? frames[f].parent : f;
  }
};

// Of a _FunctionBody and an _Invoke: which of the functions that call each other.
std::uint32_t function_number(const NodeDef& node);

// invalid_argument, naming the node, for a loop that is none: a node that takes something from a
// frame beside or outside of its own.
Expected<Frames> find_frames(const GraphDef& graph, const OpRegistry& ops);

// unimplemented, naming the node, for a function that calls itself on several devices. REQUIRES:
// nodes are placed.
Status functions_on_one_device(const GraphDef& graph, const Frames& frames, const OpRegistry& ops);

}  // namespace troupe
