// The actor of one partition of one compiled step.
#pragma once

#include <caf/fwd.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/hub.hpp"
#include "actors/interfaces.hpp"

namespace troupe {

// A resource of the plan, as this process knows it. One of the handles is set, by kind.
struct ResourceHandle {
  ResourceId id;
  std::string name;       // of the variable, inside its container
  std::uint64_t key = 0;  // names the variable or queue for conflicts (Uses)
  VariablesActor variables;
  QueueActor queue;
  DatasetActor dataset;
};

// What is particular to a write node.
struct WriteInfo {
  std::shared_ptr<const UpdateRule> rule;
  std::uint32_t key = 0;  // WriteKey::node: equal for the copies made for replicas
  std::uint32_t replica = 0;
};

// A dataset of the plan: what START names elements of.
struct DatasetRead {
  std::uint32_t resource = 0;
  std::uint32_t elements = 1;  // that a run takes: one for each replica
};

// Where the channels that leave a partition go. Filled once all executors of the process exist,
// before the first start; read by lanes.
struct ChannelRoutes {
  struct Route {
    std::uint32_t partition = 0;
    ProcessId process = 0;
    ExecutorActor local;  // set when it stays in this process
  };
  CompiledId compiled = 0;
  Hub* hub = nullptr;  // null: every route is local
  std::unordered_map<ChannelId, Route> routes;
};

struct ExecutorSetup {
  CompiledId compiled = 0;
  std::uint32_t partition = 0;
  std::shared_ptr<const Program> program;
  DeviceActor device;
  CoordinatorActor coordinator;
  FilesActor files;
  std::vector<ResourceHandle> resources;  // parallel to Plan::resources
  std::vector<DatasetRead> datasets;
  std::unordered_map<std::uint32_t, WriteInfo> writes;  // by plan node
  // For reads ordered after writes of their own run: the keys of those writes, by plan node.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> after;
  std::uint32_t write_nodes = 0;
  std::shared_ptr<const ChannelRoutes> routes;
  std::shared_ptr<void> alive;  // WorkerOptions::alive
};

// Runs the partition's part of each attempt: bursts on the device's lanes, requests to resources,
// arrivals into the step's inbox, one PartitionDone at the end. Its handlers run cheap nodes, and
// leave the rest of a burst to the lanes. Exits when told; what runs then is dropped.
ExecutorActor spawn_executor(caf::actor_system& system, ExecutorSetup setup);

}  // namespace troupe
