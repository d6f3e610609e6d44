// The thread on which a process compiles.
#pragma once

#include <caf/fwd.hpp>

#include "actors/interfaces.hpp"

namespace troupe {

// The name of its actor.
inline constexpr const char* kCompiler = "compiler";

// Runs one piece of work after the other. Ends by exit message, after the work under way.
// `own_thread`: false uses the scheduler, for a simulation on one thread.
CompilerActor spawn_compiler(caf::actor_system& system, bool own_thread);

}  // namespace troupe
