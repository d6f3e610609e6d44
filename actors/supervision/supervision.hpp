// The state machine of a supervisor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/supervision/child_spec.hpp"
#include "actors/supervision/restart_budget.hpp"

namespace troupe {

// Starts children in order, restarts them by their specs, and stops them in reverse order.
//
// Owned by one thread or actor at a time. No clock and no processes: inputs append to `out` what
// has to be done, `now` is the caller's monotonic time, and the caller calls tick() at
// next_wakeup(). The caller answers a Start with started() or ended(), at once or later, and
// reports each end with ended(), once. Reports of earlier incarnations are ignored.
//
//   begin --> starting --all run--> running --stop, budget spent, auto shutdown--> ending --> over
//                 |---- one cannot be started: ending ----^
//
// Start order: while the supervisor starts, and always except for one_for_one, a child is started
// when all before it run. Children are stopped one at a time, the last first; meanwhile none is
// started.
class Supervision {
 public:
  struct Start {
    std::string child;
    std::uint64_t incarnation = 0;  // 1, 2, ...
  };
  struct Stop {  // ask it to end
    std::string child;
    std::uint64_t incarnation = 0;
  };
  struct Kill {
    std::string child;
    std::uint64_t incarnation = 0;
  };
  // Once: no child is left. Ok after stop() and auto shutdown; else why the supervisor ended.
  struct Over {
    Status why;
  };
  using Output = std::variant<Start, Stop, Kill, Over>;
  using Outputs = std::deque<Output>;

  enum class State : std::uint8_t {
    idle,      // never started
    starting,  // Start was given
    running,
    waiting,   // is started again, in its turn and after its pause
    stopping,  // Stop was given
    killed,    // Kill was given
    ended,     // is not started again
  };
  struct Child {
    ChildSpec spec;
    State state = State::idle;
    std::uint64_t incarnation = 0;
    int restarts = 0;       // for its own ends
    std::string last_exit;  // empty: it never ended by itself
    Instant since{};        // of `state`
  };

  // REQUIRES: spec.check(children).ok()
  Supervision(SupervisorSpec spec, std::vector<ChildSpec> children, std::uint64_t seed);

  void begin(Instant now, Outputs& out);
  void started(const std::string& child, std::uint64_t incarnation, Instant now, Outputs& out);
  // Also the answer to a Start that failed.
  void ended(const std::string& child, std::uint64_t incarnation, ChildExit exit, Instant now,
             Outputs& out);
  // Adds a child after the others and starts it. already_exists: another one has its id.
  // failed_precondition: the supervisor is ending.
  Status add(ChildSpec spec, Instant now, Outputs& out);
  // Stops a child; it is not started again. not_found: none has that id.
  Status stop_child(const std::string& child, Instant now, Outputs& out);
  // Stops a child if it runs, and starts it again, which costs no restart.
  Status restart_child(const std::string& child, Instant now, Outputs& out);
  // The work of the children has progressed: restarts before now no longer count.
  void progressed();
  void stop(Instant now, Outputs& out);
  // Ends at once: kills all children that are there.
  void kill_all(Instant now, Outputs& out);
  void tick(Instant now, Outputs& out);
  Instant next_wakeup() const;

  bool running() const { return phase_ == Phase::running; }
  bool ending() const { return phase_ >= Phase::ending; }
  bool over() const { return phase_ == Phase::over; }
  std::vector<Child> children() const;

 private:
  enum class Phase : std::uint8_t { idle, starting, running, ending, over };
  struct Entry : Child {
    Entry(ChildSpec s, const RestartBudget::Options& pauses, std::uint64_t seed)
        : pauses(pauses, seed) {
      spec = std::move(s);
    }
    bool wanted = true;      // in some incarnation
    bool must_stop = false;  // this incarnation
    Instant at{};            // waiting: not before; stopping: killed then
    RestartBudget pauses;
    bool alive() const {
      return state == State::starting || state == State::running || state == State::stopping ||
             state == State::killed;
    }
  };

  Entry* find(const std::string& child);
  Entry* find(const std::string& child, std::uint64_t incarnation);
  void enter(Entry& entry, State state, Instant now);
  RestartBudget::Options pauses() const;
  void restart_for(Entry& entry, Instant now);
  void not_again(Entry& entry);
  void end(Status why);
  bool may_start(std::size_t k) const;
  void advance(Instant now, Outputs& out);
  bool stop_next(Instant now, Outputs& out);

  const SupervisorSpec spec_;
  Random random_;
  RestartBudget budget_;
  std::vector<Entry> children_;  // in start order
  Phase phase_ = Phase::idle;
  bool hurry_ = false;  // kill_all()
  Status why_;
};

}  // namespace troupe
