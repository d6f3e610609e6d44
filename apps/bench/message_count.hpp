// How many messages the actors of this process handle.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <cstdint>
#include <memory>

namespace troupe {

// An actor system that counts. Its actors run as in production, but let others run after every
// single message, so times taken in it mean nothing, and no timer ends: what has a deadline does
// not meet it, and what is lost is not sent again. For Session's constructor that takes a system;
// must outlive the session.
class CountingSystem {
 public:
  CountingSystem();
  ~CountingSystem();
  CountingSystem(const CountingSystem&) = delete;
  CountingSystem& operator=(const CountingSystem&) = delete;

  caf::actor_system& system() { return *system_; }
  // Messages handled since the start, by all actors together.
  std::uint64_t messages() const;

 private:
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
};

}  // namespace troupe
