#include "actors/runtime/compiler_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/spawn.hpp"

namespace troupe {
namespace {

struct CompilerState {
  static constexpr const char* name = kCompiler;
};

CompilerActor::behavior_type compiler_behavior(CompilerActor::stateful_pointer<CompilerState>) {
  return {[](CompileWork& message) { message.work(); }};
}

}  // namespace

CompilerActor spawn_compiler(caf::actor_system& system, bool own_thread) {
  return own_thread
             ? spawn_actor<CompilerActor, caf::detached>(system, kCompiler, compiler_behavior)
             : spawn_actor<CompilerActor>(system, kCompiler, compiler_behavior);
}

}  // namespace troupe
