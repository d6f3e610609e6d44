// The actor of a resource of any kind.
#pragma once

#include <caf/fwd.hpp>
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/resources/resource.hpp"

namespace troupe {

// The actor around a Resource: it sends replies to the executors, and all else to the worker's
// shard. `own_thread`: the resource's calls may take long.
ResourceActor spawn_resource(caf::actor_system& system, std::unique_ptr<Resource> resource,
                             ResourceId id, WorkerActor worker, bool own_thread = false);

}  // namespace troupe
