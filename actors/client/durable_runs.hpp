// Runs whose answers wait until a checkpoint holds what they did or saw.
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

// Holds the answers of durable runs back until a checkpoint has their commits. Whoever writes
// checkpoints, the keeper, takes a state for all who wait at that moment: so one checkpoint answers
// many runs. Any thread; one keeper at a time.
//
// A checkpoint that cannot be written answers those that it was for with its error: they did
// commit, and nobody knows whether a later checkpoint will hold them.
class DurableRuns {
 public:
  using Clock = std::chrono::steady_clock;
  // ok, or why the commit is not known to be in a checkpoint. Called once, on any thread, outside
  // of all locks.
  using Answer = std::function<void(Status)>;

  // The calling thread is the keeper from now on, instead of one before. `wake` is called when it
  // has something to do that it does not know of, on any thread; it must not wait. Returns its
  // number.
  std::uint64_t opened(std::function<void()> wake);
  // The keeper with this number ends, unless another one took its place: all that wait are answered
  // with this.
  void closed(std::uint64_t keeper, const Status& why);
  // Nobody is the keeper any more.
  void ended(const Status& why);
  // ok if there is a keeper. failed_precondition: there is none, and why.
  Status available() const;
  // failed_precondition on the keeper's own thread: `method`, called there, would wait for itself.
  Status may_wait(std::string_view method) const;
  // Commits up to this one are in a checkpoint.
  void restored(CommitNumber committed);

  // `answer` is called once a checkpoint has this commit, and at `until` at the latest: if somebody
  // calls expire() then. Not `committed`: the run wrote nothing, but moved the places of datasets
  // or the draws, which are in no commit; `answer` waits for a state that is taken from now on.
  void wait(CommitNumber commit, Clock::time_point until, Answer answer, bool committed = true);

  // ---- of the keeper

  // Somebody waits for what the state that was taken last does not have.
  bool wanted() const;
  // The next state is about to be taken.
  void begin_state();
  // It was taken, has all commits up to this one, and is being written.
  void taking(CommitNumber committed);
  // What became of the checkpoint with commits up to this one. A state that could not be taken
  // answers all that wait: CommitNumber(-1).
  void written(CommitNumber committed, const Status& status);
  // The job went back: the effects of commits after `from` and before `until` are gone, although
  // later checkpoints will be of later commits.
  void undone(CommitNumber from, CommitNumber until);

  // ---- of anybody

  // Answers those whose time is over with deadline_exceeded; when the next one's is.
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
  Status gone_;  // what the last one's end was
  CommitNumber durable_ = 0, taking_ = 0;
  CommitNumber undone_from_ = 0, undone_until_ = 0;
  std::uint64_t states_ = 0;  // that were begun
  Waiters waiters_;           // by commit
  Waiters later_;             // by state, which was not begun
};

}  // namespace troupe
