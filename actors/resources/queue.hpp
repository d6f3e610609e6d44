// The resource kind of queues.
#pragma once

#include "actors/resources/queue_state.hpp"
#include "actors/resources/resource.hpp"

namespace troupe {

// invalid_argument if the handle's node does not describe a queue.
Expected<QueueSpec> queue_spec(const ResourceRef& resource);

ResourceKind queue_kind();

}  // namespace troupe
