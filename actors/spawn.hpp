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

#include "actors/inline_send.hpp"
#include "actors/runtime/residents.hpp"

namespace troupe {

namespace detail {
// What the exception says of itself.
std::string text_of(const std::exception_ptr& thrown);
// A fault, unless that is how actors of the runtime end: told to, or known to nobody.
void ended(caf::actor_system& system, const char* actor, const caf::error& reason);
// Tells who is to be told of faults of this system (faults.hpp, residents.hpp). Where there is
// nobody, says on stderr which actor ended and why, and ends the process with kOurFault.
void fault(caf::actor_system& system, const char* actor, const std::string& cause);
}  // namespace detail

// Exit code of a process that a fault of the runtime ended.
inline constexpr int kOurFault = 70;

// Spawns `behavior(self, args...)`, as caf::actor_system::spawn does. Others wait for what the
// actor has been asked, and what it has done half nobody knows: if a handler throws, or the actor
// ends for any reason but Leave's, that is a fault. The session that the system belongs to fails
// with it, or all sessions that live in a system of the program's; where there is none, as in
// workers, the process ends, and those of other processes learn that at once. `name` is for that
// last word.
template <class Actor, caf::spawn_options Options = caf::no_spawn_options, class Self,
          class... Parameters, class... Arguments>
Actor spawn_actor(caf::actor_system& system, const char* name,
                  typename Actor::behavior_type (*behavior)(Self, Parameters...),
                  Arguments&&... arguments) {
  auto begin = [name, behavior](Self self, Parameters... parameters) ->
      typename Actor::behavior_type {
        caf::actor_system* home = &self->system();
        self->set_exception_handler([name, home](std::exception_ptr& thrown) -> caf::error {
          detail::fault(*home, name, detail::text_of(thrown));
          return caf::exit_reason::unhandled_exception;
        });
        self->attach_functor(
            [name, home](const caf::error& reason) { detail::ended(*home, name, reason); });
        note_inline(self);
        return behavior(self, std::move(parameters)...);
      };
  // A system of the program's does not wait for the runtime's actors by itself (residents.hpp).
  const std::shared_ptr<Residents> residents = Residents::find(system);
  if (!residents) return system.spawn<Options>(begin, std::forward<Arguments>(arguments)...);
  residents->entered();
  auto actor = system.spawn<(Options + caf::hidden)>(begin, std::forward<Arguments>(arguments)...);
  residents->know(caf::actor_cast<caf::strong_actor_ptr>(actor));
  caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor(
      [residents, id = actor.id()] { residents->left(id); });
  return actor;
}

}  // namespace troupe
