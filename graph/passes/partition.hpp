// Cuts a placed graph at devices and memory spaces.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/control/distribute/distributed_loops.hpp"
#include "graph/passes/pass.hpp"
#include "graph/plan.hpp"

namespace troupe {

// The result of partition(), besides the rewritten step. Nodes of one partition keep their order.
//
//   producer on A --> _Copy to host --> _Send ~~~channel~~~> _Recv --> _Copy to device --> consumer
//
// One _Send and _Recv per (source port, destination device), one _Copy per (tensor, space). Tensors
// are sent from host memory. A control edge between partitions uses a data channel from the same
// node if there is one; otherwise its own channel, whose _Send has no data input and sends an empty
// u8[0]. Feeds are never sent: each partition that reads one has a slot for it. In a loop over
// several devices a _Recv comes after the _LoopBody of its part, and a _Send before the _LoopNext
// of its part.
struct Partitions {
  std::vector<TargetDevice> devices;   // sorted; at least one
  std::vector<std::uint32_t> of_node;  // partition of each node; kNoNode for feeds, handles
  std::vector<Channel> channels;
};

// The memory space of a node's inputs and outputs on a device whose memory is `device`.
MemorySpace input_space(const OpInfo& op, const NodeDef& node, std::size_t flat, DType dtype,
                        MemorySpace device);
MemorySpace output_space(const OpInfo& op, const NodeDef& node, std::size_t flat,
                         MemorySpace device);

// REQUIRES: every node except feeds has a full device of the target.
Expected<Partitions> partition(StepGraph& step, const DistributedLoops& loops,
                               const Target& target);

}  // namespace troupe
