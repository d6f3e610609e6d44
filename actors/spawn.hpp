// The one way in which actors of the runtime begin: none of them ends without a word.
#pragma once

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/spawn_options.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "actors/runtime/residents.hpp"

namespace troupe {

namespace detail {
// What the exception says of itself.
std::string text_of(const std::exception_ptr& thrown);
// Ends the process unless that is how actors of the runtime end: told to, or known to nobody.
void ended(const char* actor, const caf::error& reason);
// Says on stderr which actor ended and why, and ends the process with kOurFault.
[[noreturn]] void end_process(const char* actor, const std::string& cause);
}  // namespace detail

// Exit code of a process that a fault of the runtime ended.
inline constexpr int kOurFault = 70;

// Spawns `behavior(self, args...)`, as caf::actor_system::spawn does. Others wait for what the
// actor has been asked, and what it has done half nobody knows: if a handler throws, or the actor
// ends for any reason but Leave's, the process ends with it, and those of other processes learn
// that at once. `name` is for that last word.
template <class Actor, caf::spawn_options Options = caf::no_spawn_options, class Self,
          class... Parameters, class... Arguments>
Actor spawn_actor(caf::actor_system& system, const char* name,
                  typename Actor::behavior_type (*behavior)(Self, Parameters...),
                  Arguments&&... arguments) {
  auto begin = [name, behavior](Self self,
                                Parameters... parameters) -> typename Actor::behavior_type {
    self->set_exception_handler([name](std::exception_ptr& thrown) -> caf::error {
      detail::end_process(name, detail::text_of(thrown));
    });
    self->attach_functor([name](const caf::error& reason) { detail::ended(name, reason); });
    return behavior(self, std::move(parameters)...);
  };
  // A system of the program's does not wait for the runtime's actors by itself (residents.hpp).
  const std::shared_ptr<Residents> residents = Residents::find(system);
  if (!residents) return system.spawn<Options>(begin, std::forward<Arguments>(arguments)...);
  residents->entered();
  auto actor =
      system.spawn<(Options + caf::hidden)>(begin, std::forward<Arguments>(arguments)...);
  caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor([residents] { residents->left(); });
  return actor;
}

}  // namespace troupe
