// The runtime's actors in an actor system of the program's.
#pragma once

#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

// What lives in one actor system of the program's: the sessions that are open there, and how many
// actors they have. The system waits for the program's own actors when it ends, then for this: open
// sessions are closed, and their actors end, before the system's threads do.
//
// An actor of theirs that throws is nobody's in particular: all sessions of the system fail with
// it, and all their actors end.
//
// Made with the first session of a system, gone with the system. Any thread.
class Residents {
 public:
  // Of that system; made when there is none.
  static std::shared_ptr<Residents> in(caf::actor_system& system);
  // None: no session was ever opened there.
  static std::shared_ptr<Residents> find(caf::actor_system& system);

  // An actor begins, is known from now on, or has ended.
  void entered();
  void know(const caf::strong_actor_ptr& actor);
  void left(caf::actor_id actor);
  std::size_t actors() const;

  // A session, by a number. `told` is called with what happened when an actor throws: on any
  // thread, perhaps more than once; it must not wait for actors.
  using Told = std::function<void(const std::string&)>;
  std::uint64_t opens(Told told);
  // Calls `close` when the system ends, on the thread that ends it.
  void at_end(std::uint64_t number, std::function<void()> close);
  void forget(std::uint64_t number);

  // Tells all sessions and ends all actors. False when there is no session.
  bool fault(const std::string& what);
  // Whether the actors that a fault ends have ended, or do within that time.
  bool over_fault(std::chrono::seconds within);
  // On a thread of its own, after what was given before. The system's end waits for it.
  void aside(std::function<void()> work);

  // Whether the calling thread is one of the system's that run actors: one that waits there for
  // other actors keeps them from running.
  bool on_scheduler() const;

 private:
  friend class Door;
  explicit Residents(caf::actor_system& system);
  void end();

  const std::vector<std::thread::id> scheduler_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t actors_ = 0;
  std::map<caf::actor_id, caf::weak_actor_ptr> known_;
  bool ending_ = false;  // all that are there, and those that they still spawn
  struct Open {
    Told told;
    std::function<void()> close;
  };
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Open> open_;
  std::thread aside_;
};

}  // namespace troupe
