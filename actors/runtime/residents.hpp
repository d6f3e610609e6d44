// The runtime's actors in an actor system of the program's.
#pragma once

#include <caf/actor_system.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe {

// What lives in one actor system of the program's: the sessions that are open there, and how many
// actors they have. The system waits for the program's own actors when it ends, then for this: open
// sessions are closed, and their actors end, before the system's threads do.
//
// Made with the first session of a system, gone with the system. Any thread.
class Residents {
 public:
  // Of that system; made when there is none.
  static std::shared_ptr<Residents> in(caf::actor_system& system);
  // None: no session was ever opened there.
  static std::shared_ptr<Residents> find(caf::actor_system& system);

  // An actor begins, or has ended.
  void entered();
  void left();
  std::size_t actors() const;

  // Calls `close` when the system ends, on the thread that ends it. The number is for forget().
  std::uint64_t at_end(std::function<void()> close);
  void forget(std::uint64_t number);
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
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::function<void()>> open_;
  std::thread aside_;
};

}  // namespace troupe
