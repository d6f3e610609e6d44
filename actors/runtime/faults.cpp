#include "actors/runtime/faults.hpp"

#include <unistd.h>

#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "actors/runtime/residents.hpp"
#include "actors/spawn.hpp"

namespace troupe {
namespace {

// The registered name of the actor that holds `told`. It never gets a message.
constexpr caf::atom_value kTold = caf::atom("Faults");

struct Told final : caf::event_based_actor {
  Told(caf::actor_config& config, std::function<void(const std::string&)> tell)
      : event_based_actor(config), tell(std::move(tell)) {}
  const std::function<void(const std::string&)> tell;
};

}  // namespace

void tell_of_faults(caf::actor_system& system, std::function<void(const std::string&)> told) {
  system.registry().put(kTold, system.spawn<Told, caf::hidden + caf::lazy_init>(std::move(told)));
}

void end_at_faults(caf::actor_system& system) { system.registry().erase(kTold); }

// Ends the process without destructors, because other threads are still running.
void detail::fault(caf::actor_system& system, const char* actor, const std::string& cause) {
  const std::string what = std::string("actor '") + actor + "' ended: " + cause;
  if (const caf::strong_actor_ptr told = system.registry().get(kTold)) {
    auto* known = dynamic_cast<Told*>(caf::actor_cast<caf::abstract_actor*>(told));
    return known->tell(what);
  }
  if (const auto residents = Residents::find(system); residents && residents->fault(what)) return;
  std::fprintf(stderr, "a fault of the runtime: actor '%s' of process %d ended: %s\n", actor,
               int(getpid()), cause.c_str());
  std::fflush(stderr);
  std::_Exit(kOurFault);
}

}  // namespace troupe
