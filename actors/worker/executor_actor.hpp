// The actor of one partition of one compiled step.
#pragma once

#include <caf/fwd.hpp>
#include <memory>
#include <unordered_map>
#include <vector>

#include "actors/hub.hpp"
#include "actors/interfaces.hpp"
#include "actors/worker/partition_runs.hpp"

namespace troupe {

// Where the channels that leave a partition go. Filled once all executors of the process exist,
// before the first start; read by lanes.
struct ChannelRoutes {
  struct Route {
    std::uint32_t partition = 0;
    TaskId task{};        // that has it
    ExecutorActor local;  // set when it stays in this process
  };
  CompiledId compiled = 0;
  Hub* hub = nullptr;  // null: every route is local
  // Whoever sends to an executor of this process handles the message as well (send_inline): cheap
  // nodes there cost less than waking a thread for them. Not in a simulation, which picks the
  // order.
  bool handle_inline = false;
  std::unordered_map<ChannelId, Route> routes;
};

struct ExecutorSetup {
  CompiledId compiled = 0;
  PartitionSetup partition;
  std::vector<ServiceActor> resources;  // parallel to PartitionSetup::resources
  DeviceActor device;
  CoordinatorActor coordinator;
  std::shared_ptr<const ChannelRoutes> routes;
  std::shared_ptr<void> alive;  // WorkerOptions::alive
};

// Carries what PartitionRuns decides: bursts to the device's lanes, requests to resources, one
// PartitionDone for each attempt. Its handlers run cheap nodes, and leave the rest of a burst to
// the lanes. Exits when told; what runs then is dropped.
ExecutorActor spawn_executor(caf::actor_system& system, ExecutorSetup setup);

}  // namespace troupe
