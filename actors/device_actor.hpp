// The actor of one device.
#pragma once

#include <caf/fwd.hpp>

#include "actors/interfaces.hpp"
#include "devices/device.hpp"

namespace troupe {

// Queues work on the lanes of `device` and stays responsive meanwhile; the work itself reports to
// whoever asked. The device outlives the actor.
DeviceActor spawn_device(caf::actor_system& system, Device& device);

}  // namespace troupe
