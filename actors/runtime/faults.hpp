// Reports faults of the runtime, so that not each of them ends the process.
#pragma once

#include <caf/actor_system.hpp>
#include <functional>
#include <string>

namespace troupe {

// For an actor system that belongs to one session: `told` is called with the cause when an actor of
// the runtime throws or ends unexpectedly, on the thread that ran it, perhaps more than once. It
// must not wait for actors, since the failed one no longer answers. Without this the process ends
// with kOurFault (spawn.hpp).
void tell_of_faults(caf::actor_system& system, std::function<void(const std::string&)> told);
// From now on a fault ends the process again. Call it before the system ends.
void end_at_faults(caf::actor_system& system);

}  // namespace troupe
