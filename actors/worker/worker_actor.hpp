// The worker: one task's devices, executors and resources, and its shard.
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
  std::vector<Device*> devices;  // outlive the actor; full names
  const OpTable* ops = nullptr;
  CoordinatorActor coordinator;  // the master, or its proxy
  MasterActor master;            // set when it is in this process
  Hub* hub = nullptr;            // null: a job of one process
  bool own_threads = true;       // for what takes long; false in a simulation on one thread
  bool handle_inline = true;     // messages between executors, by who sends them
  FileSystem* files = &disk();   // of Save and Restore; outlives the actor
  std::function<std::uint64_t()> random;  // Platform::random; empty: this machine's
  std::shared_ptr<Trace> trace;           // of this process; null: nothing is recorded
  std::uint64_t step_memory = 0;          // Cluster::step_memory
  // Held by every actor that may use a device; gone when all of them are.
  std::shared_ptr<void> alive;
};

// Loads steps, makes the resources their plans name, and passes the coordinator's messages on:
// PREPARE to the resources that the run wrote to, LiveLists to all. Executors and resources end
// with it.
WorkerActor spawn_worker(caf::actor_system& system, WorkerOptions options);

}  // namespace troupe
