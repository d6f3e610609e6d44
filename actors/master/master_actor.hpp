// The master: sessions, compiled steps, and the coordinator of runs.
#pragma once

#include <caf/fwd.hpp>
#include <cstddef>

#include "actors/interfaces.hpp"
#include "actors/master/coordinator.hpp"
#include "actors/master/sessions.hpp"
#include "core/trace.hpp"
#include "ops/op.hpp"

namespace troupe {

struct MasterOptions : Sessions::Options {
  const OpTable* ops = nullptr;  // outlives the actor
  Coordinator::Options coordinator;
  std::shared_ptr<Trace> trace;  // of this process; null: nothing is recorded
  bool own_threads = true;       // for long work; false in a simulation on one thread
  Instant stands_still{};        // Cluster::stands_still
};

// The master actor, one per job. Tasks of all processes are added with TaskUp and removed with
// TaskLost. Two state machines decide, and the actor carries out their outputs: Sessions (graphs,
// steps, resets) and the Coordinator (attempts, numbers, commits).
MasterActor spawn_master(caf::actor_system& system, MasterOptions options);

}  // namespace troupe
