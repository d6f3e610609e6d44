// The actor of one variable container on one device.
#pragma once

#include <caf/fwd.hpp>
#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "core/trace.hpp"
#include "devices/device.hpp"

namespace troupe {

// `name` is the container's, for errors; ResourceStaged is sent to `worker` with `id`. `alive`: see
// WorkerOptions.
VariablesActor spawn_variables(caf::actor_system& system, std::string name, ResourceId id,
                               Device& device, DeviceActor lanes, WorkerActor worker,
                               std::shared_ptr<void> alive, std::shared_ptr<Trace> trace = nullptr);

}  // namespace troupe
