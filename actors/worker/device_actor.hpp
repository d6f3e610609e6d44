// The actor of one device.
#pragma once

#include <caf/fwd.hpp>
#include <memory>

#include "actors/interfaces.hpp"
#include "devices/device.hpp"

namespace troupe {

// Queues work on the lanes of `device` and stays responsive meanwhile; the work itself reports to
// whoever asked. The device outlives `alive`, which the actor holds until it ends: the work may be
// done, and everybody else gone, before launch() has returned.
DeviceActor spawn_device(caf::actor_system& system, Device& device, std::shared_ptr<void> alive);

}  // namespace troupe
