// The master: sessions, compiled steps, and the coordinator of runs.
#pragma once

#include <caf/fwd.hpp>
#include <cstddef>

#include "actors/interfaces.hpp"
#include "actors/master/coordinator.hpp"
#include "core/trace.hpp"
#include "ops/op.hpp"

namespace troupe {

struct MasterOptions {
  const OpTable* ops = nullptr;  // outlives the actor
  Coordinator::Options coordinator;
  std::size_t compiled_steps = 64;  // kept a session; the least recently used one goes
  bool soft_placement = true;
  std::int32_t replicas = 1;  // of the job: with several, variables are spread over the tasks
  std::vector<std::string> disabled_passes;
  std::shared_ptr<Trace> trace;  // of this process; null: nothing is recorded
  bool own_threads = true;       // for what takes long; false in a simulation on one thread
};

// One per job. Processes are announced with ProcessUp (its own too) and taken off with ProcessLost.
// A step is compiled when a client first asks for it and loaded by every process that has a part in
// it; then its runs go through the Coordinator, whose outputs this actor carries out.
MasterActor spawn_master(caf::actor_system& system, MasterOptions options);

}  // namespace troupe
