// How a session goes on after it has lost a part of its runtime: from a state that it kept, with
// the runs that it logged since.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>

#include "actors/client/detail/runs.hpp"

namespace troupe::detail {

// Holds the gate exclusively, and lets this thread pass it.
class Alone {
 public:
  explicit Alone(SessionCore& core) : core_(core), held_(core.callbacks), lock_(core.gate) {
    core_.passes = std::this_thread::get_id();
  }
  ~Alone() { core_.passes = std::thread::id(); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  SessionCore& core_;
  const CallbacksHeld held_;  // released after the lock
  std::unique_lock<std::shared_mutex> lock_;
};

// Tells the log whether concurrent runs, repeated one after the other, may get other elements or
// random numbers. Looks at nodes that were added since the last call.
void note_order(SessionCore& core);

// Calls `take` while no thread starts a run; `quiet`: none is under way. Repeats it after each loss
// from which the session recovers.
template <class T>
Expected<T> taken_alone(const std::shared_ptr<SessionCore>& shared,
                        const std::function<Expected<T>(bool quiet)>& take) {
  SessionCore& core = *shared;
  for (;;) {
    std::uint64_t generation = 0;
    const auto alone = [&]() -> Expected<T> {
      // Both locks are held by who starts runs. A callback may wait for a lock of the program whose
      // holder waits for one of these, and once() for a callback: so nobody waits here for
      // callbacks while it has a lock, nor for a lock while it holds callbacks back.
      std::optional<CallbacksHeld> later;
      std::unique_lock once(core.doing_once, std::defer_lock);
      std::unique_lock initialising(core.initialising, std::defer_lock);
      for (;;) {
        later.emplace(core.callbacks);
        if (std::try_lock(once, initialising) == -1) break;
        later.reset();
        const std::scoped_lock my_turn(once, initialising);
      }
      const Alone nobody_else(core);
      if (!core.failed.ok()) return core.failed;
      generation = core.generation;
      return take(core.log.quiet());
    };
    auto taken = alone();
    if (taken.ok() || taken.status().code() != Code::unavailable || !core.keeps) return taken;
    TROUPE_TRY(recover(shared, generation, taken.status()));
  }
}

}  // namespace troupe::detail
