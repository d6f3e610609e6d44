// Where a fault of the runtime is told, so that not every one ends the process.
#pragma once

#include <caf/actor_system.hpp>
#include <functional>
#include <string>

namespace troupe {

// Of an actor system that belongs to one session: `told` is called with what happened when an actor
// of the runtime throws or ends out of turn, on whichever thread ran it, perhaps more than once. It
// must not wait for actors: the one that failed answers nobody any more. Without this the process
// ends with kOurFault (spawn.hpp).
void tell_of_faults(caf::actor_system& system, std::function<void(const std::string&)> told);
// From here on a fault ends the process again. Before the system ends.
void end_at_faults(caf::actor_system& system);

}  // namespace troupe
