// The runtime's actors in an actor system of the program.
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

// The sessions that are open in one actor system of the program, and their actors. When the system
// ends, it waits for the program's own actors first, then for this: open sessions are closed, and
// their actors end, before the system's threads do.
//
// If one of their actors throws, all sessions of the system fail, and all their actors end.
//
// Made with the first session of a system; ends with the system. Any thread.
class Residents {
 public:
  // Those of that system; made if there are none.
  static std::shared_ptr<Residents> in(caf::actor_system& system);
  // Null if no session was ever opened there.
  static std::shared_ptr<Residents> find(caf::actor_system& system);

  // An actor begins, is registered, or has ended.
  void entered();
  void know(const caf::strong_actor_ptr& actor);
  void left(caf::actor_id actor);
  std::size_t actors() const;

  // Registers a session; returns its number. `told` is called with the cause when an actor throws:
  // on any thread, perhaps more than once; it must not wait for actors.
  using Told = std::function<void(const std::string&)>;
  std::uint64_t opens(Told told);
  // Calls `close` when the system ends, on the thread that ends it.
  void at_end(std::uint64_t number, std::function<void()> close);
  void forget(std::uint64_t number);

  // Tells all sessions and ends all actors. False if there is no session.
  bool fault(const std::string& what);
  // Waits at most that long for the actors that a fault ends. False if some have not ended.
  bool over_fault(std::chrono::seconds within);
  // Runs `work` on another thread, after earlier work. The system's end waits for it. False: no
  // thread could be started, and nothing is done.
  bool aside(std::function<void()> work);

  // Whether the calling thread is one of the system's scheduler: waiting there for other actors
  // would keep them from running.
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
  bool ending_ = false;  // all actors end, including those that are still spawned
  struct Open {
    Told told;
    std::function<void()> close;
  };
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Open> open_;
  std::shared_ptr<std::thread> aside_;  // which joins the one before
};

}  // namespace troupe
