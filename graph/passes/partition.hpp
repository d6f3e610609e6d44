// Cuts a placed graph at devices and memory spaces.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/control/distribute/distributed_loops.hpp"
#include "graph/passes/pass.hpp"
#include "graph/plan.hpp"

namespace troupe {

// What partition leaves beside the rewritten step. Nodes of one partition keep their order.
//
//   producer on A --> _Copy to host --> _Send ~~~channel~~~> _Recv --> _Copy to device --> consumer
//
// One _Send and _Recv per (source port, destination device), one _Copy per (tensor, space). What
// crosses is in host memory. A control edge that crosses waits for a data channel from the same
// node when there is one; else it gets a channel of its own, whose _Send has no data input and
// carries an empty u8[0]. Feeds are slots of every partition that reads them: never sent. In a loop
// over several devices a _Recv comes after the _LoopBody of its part, and a _Send before the
// _LoopNext of its.
struct Partitions {
  std::vector<TargetDevice> devices;   // sorted; at least one
  std::vector<std::uint32_t> of_node;  // partition of each node; kNoNode for feeds, handles
  std::vector<Channel> channels;
};

// Where a node's tensors live on a device whose memory is `device`.
MemorySpace input_space(const OpInfo& op, const NodeDef& node, std::size_t flat, DType dtype,
                        MemorySpace device);
MemorySpace output_space(const OpInfo& op, const NodeDef& node, std::size_t flat,
                         MemorySpace device);

// REQUIRES: every node but feeds has a full device of the target.
Expected<Partitions> partition(StepGraph& step, const DistributedLoops& loops,
                               const Target& target);

}  // namespace troupe
