// A loop of a client's own, in the paper's words, taken apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/control/paper_loops/detail/client_frames.hpp"

namespace troupe::detail {

// The nodes of one frame by what they are in its loop. Plain ones are of the condition or the body.
struct ClientLoop {
  struct Variable {
    NodeId enter, merge, next;
  };
  std::uint32_t frame = 0;
  NodeId cond = kNoNode;  // the LoopCond
  std::vector<Variable> variables;
  std::vector<NodeId> enters, switches, leaves;
  std::vector<NodeId> condition, body;
  std::vector<NodeId> waited_for;  // of the condition, what others of the loop come after
  bool condition_writes = false;
  std::int64_t window = 0;
};

// The nodes of frame `f`, each behind what it takes of them. Loops in it are single nodes by now.
// invalid_argument, naming the nodes of the frame with their lines, where that is no loop.
Expected<ClientLoop> read_client_loop(const std::vector<NodeDef>& nodes, const ClientFrames& frames,
                                      std::uint32_t f, const OpRegistry& ops);

}  // namespace troupe::detail
