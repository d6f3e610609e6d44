// The actor of a resource of any kind.
#pragma once

#include <caf/fwd.hpp>
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/resources/resource.hpp"

namespace troupe {

// Carries what the machine says: replies to the executors that asked, the rest to the worker's
// shard. `own_thread`: its calls may take long.
ResourceActor spawn_resource(caf::actor_system& system, std::unique_ptr<Resource> resource,
                             ResourceId id, WorkerActor worker, bool own_thread = false);

}  // namespace troupe
