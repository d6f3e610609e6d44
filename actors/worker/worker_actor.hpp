// The worker actor: the devices, executors, resources and shard of one task.
#pragma once

#include <caf/fwd.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/hub.hpp"
#include "actors/interfaces.hpp"
#include "devices/device.hpp"
#include "ops/op.hpp"
#include "serialization/file.hpp"

namespace troupe {

struct WorkerOptions {
  TaskId task{};
  std::uint64_t view = 1;
  std::vector<Device*> devices;  // with full names; outlive the actor
  const OpTable* ops = nullptr;
  CoordinatorActor coordinator;           // the master, or its proxy
  MasterActor master;                     // set if it is in this process
  Hub* hub = nullptr;                     // null: a job of one process
  bool own_threads = true;                // for long work; false in a simulation on one thread
  bool handle_inline = true;              // ChannelRoutes::handle_inline
  FileSystem* files = &disk();            // of Save and Restore; outlives the actor
  std::function<std::uint64_t()> random;  // Platform::random; empty: this machine's
  std::shared_ptr<Trace> trace;           // of this process; null: nothing is recorded
  std::uint64_t step_memory = 0;          // Cluster::step_memory
  // Held by every actor that may use a device.
  std::shared_ptr<void> alive;
};

// Loads steps, makes their resources, and passes on the coordinator's messages: PREPARE to the
// resources that the run wrote to, LiveLists to all. Executors and resources end with it.
WorkerActor spawn_worker(caf::actor_system& system, WorkerOptions options);

}  // namespace troupe
