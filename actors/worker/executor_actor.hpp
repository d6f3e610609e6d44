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

// The destinations of the channels that leave a partition. Filled before the first start, when all
// executors of the process exist; read by lanes.
struct ChannelRoutes {
  struct Route {
    std::uint32_t partition = 0;
    TaskId task{};        // of the partition
    ExecutorActor local;  // set if the partition is in this process
  };
  CompiledId compiled = 0;
  Hub* hub = nullptr;  // null: every route is local
  // The sender also handles messages to executors of this process (send_inline), because running
  // cheap nodes there costs less than waking a thread. False in a simulation, which chooses the
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
  WorkerActor worker;
  std::shared_ptr<const ChannelRoutes> routes;
  std::shared_ptr<void> alive;  // WorkerOptions::alive
};

// The actor around PartitionRuns: it sends bursts to the device's lanes, requests to resources, and
// one PartitionDone for each attempt. Its handlers run cheap nodes and leave the rest of a burst to
// the lanes. Ends by exit message; results of running bursts are dropped.
ExecutorActor spawn_executor(caf::actor_system& system, ExecutorSetup setup);

}  // namespace troupe
