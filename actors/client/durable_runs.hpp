// Runs whose answers wait until a checkpoint contains their effects.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "core/status.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Holds back the answers of durable runs until a checkpoint contains their commits. The thread that
// writes checkpoints, the keeper, takes one state for all runs that wait then: so one checkpoint
// answers many runs. Any thread; one keeper at a time.
//
// If a checkpoint cannot be written, its runs are answered with the error: they have committed, but
// it is not known whether a later checkpoint will contain them.
class DurableRuns {
 public:
  using Clock = std::chrono::steady_clock;
  // ok, or why the commit is not known to be in a checkpoint. Called once, on any thread, without
  // locks held.
  using Answer = std::function<void(Status)>;

  // The calling thread becomes the keeper, replacing an earlier one. `wake` is called, on any
  // thread, when there is new work for it; it must not wait. Returns the keeper's number.
  std::uint64_t opened(std::function<void()> wake);
  // The keeper with this number ends, unless it was replaced: all waiting runs are answered with
  // `why`.
  void closed(std::uint64_t keeper, const Status& why);
  // Ends the current keeper, whatever its number.
  void ended(const Status& why);
  // failed_precondition, with the reason, if there is no keeper.
  Status available() const;
  // failed_precondition on the keeper's own thread, where `method` would wait for itself.
  Status may_wait(std::string_view method) const;
  // Commits up to this one are in a checkpoint.
  void restored(CommitNumber committed);

  // Calls `answer` when a checkpoint has this commit, or when expire() is called after `until`.
  // Without `committed`, the run wrote nothing but moved places of datasets or draws, which are in
  // no commit: `answer` waits for a state that is taken from now on.
  void wait(CommitNumber commit, Clock::time_point until, Answer answer, bool committed = true);

  // ---- for the keeper

  // Whether a run waits for something that the last taken state does not have.
  bool wanted() const;
  // The next state is about to be taken.
  void begin_state();
  // The state was taken, has all commits up to this one, and is being written.
  void taking(CommitNumber committed);
  // The result of writing the checkpoint with commits up to this one. CommitNumber(-1): the state
  // could not be taken, which answers all waiting runs.
  void written(CommitNumber committed, const Status& status);
  // The job went back: the effects of commits after `from` and before `until` are gone, although
  // later checkpoints will have later commits.
  void undone(CommitNumber from, CommitNumber until);

  // ---- for any thread

  // Answers runs whose time is up with deadline_exceeded; returns the next time limit.
  std::optional<Clock::time_point> expire(Clock::time_point now);

 private:
  struct Waiter {
    CommitNumber commit;
    Clock::time_point until;
    Answer answer;
  };
  using Waiters = std::multimap<std::uint64_t, Waiter>;
  static void move(Waiters& from, Waiters::iterator begin, Waiters::iterator end, Waiters& to);
  static void answer_all(Waiters& waiters, const Status& why);
  void end(const Status& why, Waiters& left);

  mutable std::mutex mutex_;
  std::function<void()> wake_;  // empty: there is no keeper
  std::uint64_t keeper_number_ = 0;
  std::thread::id keeper_;
  Status gone_;  // why the last keeper ended
  CommitNumber durable_ = 0, taking_ = 0;
  CommitNumber undone_from_ = 0, undone_until_ = 0;
  std::uint64_t states_ = 0;  // number of begun states
  Waiters waiters_;           // by commit
  Waiters later_;             // by the number of a later state
};

}  // namespace troupe
