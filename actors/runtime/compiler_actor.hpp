// The thread on which a process compiles.
#pragma once

#include <atomic>
#include <caf/fwd.hpp>
#include <memory>

#include "actors/interfaces.hpp"

namespace troupe {

// Its actor's name. It is none of those that a sender's thread lends itself to.
inline constexpr const char* kCompiler = "compiler";

// Set by whoever asked for work and wants it no more. What has not begun does not begin, a compile
// under way ends at its next stage.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// Runs what it is given, one piece of work after the other. Ends when it is told to exit, after the
// work under way.
// `own_thread`: false leaves it to the scheduler, for a simulation on one thread.
CompilerActor spawn_compiler(caf::actor_system& system, bool own_thread);

}  // namespace troupe
