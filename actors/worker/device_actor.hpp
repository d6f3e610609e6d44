// The actor of one device.
#pragma once

#include <caf/fwd.hpp>
#include <memory>

#include "actors/interfaces.hpp"
#include "devices/device.hpp"

namespace troupe {

// Launches work on the lanes of `device` without waiting for it; the work itself reports to its
// requester. The device outlives `alive`, which the actor holds until it ends: when launch()
// returns, the work may be done and all other holders gone.
DeviceActor spawn_device(caf::actor_system& system, Device& device, std::shared_ptr<void> alive);

}  // namespace troupe
