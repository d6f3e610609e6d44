// The thread on which a process compiles.
#pragma once

#include <caf/fwd.hpp>

#include "actors/interfaces.hpp"

namespace troupe {

// Its actor's name.
inline constexpr const char* kCompiler = "compiler";

// Runs what it is given, one piece of work after the other. Ends when it is told to exit, after the
// work under way.
// `own_thread`: false leaves it to the scheduler, for a simulation on one thread.
CompilerActor spawn_compiler(caf::actor_system& system, bool own_thread);

}  // namespace troupe
