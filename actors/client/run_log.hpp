// The runs of a session since its state was kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/call.hpp"
#include "core/status.hpp"

namespace troupe {

// Logs the runs that a kept state does not contain, in order, so that a session that goes back to
// that state can repeat them. Any thread; plain data except the Calls that it looks at.
//
// A run is entered before it is sent. Its outcome is recorded when it is answered, to be compared
// when the run is repeated; a failure that will happen again counts, too. A run that had no effect
// is dropped, as is one that was lost with a part of the job. Runs of steps that only read, which
// have none however they end, are not entered.
//
// The log is broken, until a state is kept again, by anything that may not repeat with the same
// result: a run that was ended by its deadline or its client, concurrent runs of several clients if
// their order matters, an immediate run whose values others had changed, or too many runs. It is
// also broken if not everything was entered. Runs that take elements of queues must not be
// concurrent: the one that took the older element may be the one that commits later.
class RunLog {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // of feeds and notes
  static constexpr std::size_t kMostEntries = 200'000;

  // The outcome of a run.
  struct Outcome {
    Code code = Code::ok;
    CommitNumber committed = 0;      // 0: it wrote nothing
    std::uint64_t fetches_hash = 0;  // of small fetches only
    friend bool operator==(const Outcome&, const Outcome&) = default;
    std::string text() const;
  };
  static Outcome outcome_of(const CallResult& result);
  using Again = std::function<Outcome()>;

  // Whether the order of concurrent runs affects their results, so that they cannot be repeated one
  // after the other.
  void set_order_matters(bool matters);

  // Enters a run before it is sent; returns its number here. `bytes`: held by `again`. `takes`: it
  // may take elements (takes_elements). `files`: that it reads, and would read again.
  std::uint64_t enter(std::weak_ptr<Call> call, std::size_t bytes, Again again, bool takes = false,
                      std::vector<std::string> files = {});
  void answered(std::uint64_t number, const CallResult& result);
  // Enters another action that moved the place of the job and is over. It came after commit `seen`
  // and before the next.
  void enter_done(Again again, std::size_t bytes, CommitNumber seen);
  // The state can no longer be reached by repeating runs, for that reason.
  void broke(const std::string& why);

  // Whether no run is under way: only then does a state that is taken now have known contents.
  bool quiet();
  void kept();
  // For a state that takes long to keep while runs go on: taken() when it is taken, taken_is_kept()
  // when it is kept. Until then earlier entries stay. A second taken() replaces the first. False if
  // the state is of no use, because the log was broken meanwhile.
  void taken();
  // Of a state that is taken now it is not known where it stands: an earlier mark is not its.
  void not_taken();
  bool taken_is_kept();

  // The files that must stay, so that the runs can be repeated.
  std::vector<std::string> files() const;

  // failed_precondition, with the reason, if the runs cannot be repeated.
  Status whole() const;
  struct Done {
    Outcome outcome;
    Again again;
  };
  // What must be repeated, in the order of commits, what has no commit after the one that it saw;
  // or the error of whole(). REQUIRES: no run of the log is under way.
  Expected<std::vector<Done>> done();

 private:
  struct Entry {
    std::uint64_t number = 0;
    std::weak_ptr<Call> call;
    bool open = true;
    bool takes = false;
    Outcome outcome;
    CommitNumber after = 0;  // without a commit: it comes after that one; 0: unknown
    std::size_t bytes = 0;
    Again again;
    std::vector<std::string> files = {};
  };
  void settle();
  void close(std::deque<Entry>::iterator entry, const CallResult& result);
  void make_room(std::size_t bytes);
  bool writes_down() const { return broken_.empty() || taken_ != 0; }
  void forget(const std::string& why);

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // if broken, only those without an answer
  std::uint64_t next_ = 1;
  std::size_t bytes_ = 0, open_ = 0, open_takers_ = 0;
  bool order_matters_ = true;
  std::string broken_ = "its state was not kept";
  std::uint64_t taken_ = 0;  // the first run that the taken state does not have; 0: none taken
};

}  // namespace troupe
