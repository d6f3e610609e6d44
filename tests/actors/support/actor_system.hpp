// An actor system as the runtime makes it, for tests of single actors.
#pragma once

#include <doctest/doctest.h>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/scheduled_actor.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "actors/runtime/runtime.hpp"

namespace troupe::testing {

class System {
 public:
  // Threads that make a system or spawn keep it from ending (see Runtime::start), so others do it.
  System() {
    std::thread([&] { system_.emplace(*config_); }).join();
  }
  template <class Behavior, class... Args>
  auto spawn(Behavior behavior, Args... args) {
    decltype(system_->spawn(behavior, args...)) made;
    std::thread([&] { made = system_->spawn(std::move(behavior), std::move(args)...); }).join();
    return made;
  }
  // What `make` spawns in the system.
  template <class Make>
  auto make(Make make) {
    decltype(make(*system_)) made;
    std::thread([&] { made = make(*system_); }).join();
    return made;
  }
  std::size_t running() { return system_->registry().running(); }

 private:
  std::unique_ptr<caf::actor_system_config> config_ = actor_config();
  std::optional<caf::actor_system> system_;
};

// Until the actor waits for a message: whoever sends one then starts it.
template <class Actor>
void settle(const Actor& actor) {
  auto* scheduled =
      dynamic_cast<caf::scheduled_actor*>(caf::actor_cast<caf::abstract_actor*>(actor));
  REQUIRE(scheduled != nullptr);
  while (!scheduled->mailbox().blocked()) std::this_thread::yield();
}

}  // namespace troupe::testing
