// The structure of a client loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/control/paper_loops/detail/client_frames.hpp"

namespace troupe::detail {

// The nodes of a frame by their role in its loop. Ordinary ones are in the condition or the body.
struct ClientLoop {
  struct Variable {
    NodeId enter, merge, next;
  };
  std::uint32_t frame = 0;
  NodeId cond = kNoNode;  // the LoopCond
  std::vector<Variable> variables;
  std::vector<NodeId> enters, switches, leaves;
  std::vector<NodeId> condition, body;
  std::vector<NodeId> waited_for;  // condition nodes with control edges to others of the loop
  bool condition_writes = false;
  std::int64_t window = 0;
};

// The nodes of frame `f`, in topological order. Loops in it are already single nodes.
// invalid_argument, naming the nodes of the frame with their lines, if it is not a loop.
Expected<ClientLoop> read_client_loop(const std::vector<NodeDef>& nodes, const ClientFrames& frames,
                                      std::uint32_t f, const OpRegistry& ops);

}  // namespace troupe::detail
