// The actor of one queue.
#pragma once

#include <caf/fwd.hpp>

#include "troupe/actors/interfaces.hpp"

namespace troupe {

// A bounded FIFO of tensors. Back-pressure is an answer not yet given: nobody polls. Staged records
// and waits are reported to `worker` as `id`. REQUIRES: QueueState::check(spec).ok().
ResourceActor spawn_queue(caf::actor_system& system, QueueSpec spec, ResourceId id,
                          WorkerActor worker);

}  // namespace troupe
