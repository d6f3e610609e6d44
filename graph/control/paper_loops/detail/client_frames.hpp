// The frames of client loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "graph/node_query.hpp"

namespace troupe::detail {

// Frames as in the paper: the nodes after the Enters with one name in one outer frame. Frame 0 is
// around all others.
struct ClientFrames {
  struct Frame {
    std::string name;
    std::uint32_t parent = 0;
    std::vector<NodeId> nodes;
  };
  std::vector<Frame> frames;
  std::vector<std::uint32_t> of_node;  // Enter and Leave are inside
};

// Constants and handles are the same in every frame.
bool is_everywhere(const NodeDef& node, const OpRegistry& ops);
// invalid_argument, naming the node and both inputs, if a node takes inputs from two frames.
Expected<ClientFrames> find_client_frames(const std::vector<NodeDef>& nodes, const OpRegistry& ops);

// `some` in topological order without back edges, the smallest number first. The error names the
// nodes of a cycle.
Expected<std::vector<NodeId>> in_order(const std::vector<NodeDef>& nodes, std::vector<NodeId> some,
                                       const OpRegistry& ops);

// "'a' (a.cpp:3), 'b' (a.cpp:4)", for the first few.
std::string nodes_text(const std::vector<NodeDef>& nodes, const std::vector<NodeId>& some);

}  // namespace troupe::detail
