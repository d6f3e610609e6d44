// The unanswered runs of a job.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/master/step_shape.hpp"
#include "core/transaction.hpp"

namespace troupe {

// "step 4 of session 0", for errors.
std::string step_name(const RunId& run);

// The coordinator's state of each run, and what follows from all of them. Pointers to runs stay
// valid. Part of the coordinator. A thousand runs that wait for an empty queue are to cost a step
// beside them nothing, so what is asked at each event is kept in lists: of the runs of each phase,
// of the attempts, and of what is due.
class RunTable {
 public:
  enum class Phase : std::uint8_t {
    queued,     // waits for admission
    running,    // attempt started
    ready,      // all partitions done, waits for a number
    preparing,  // has a number, waits for the shards
    applying,   // decided; its changes outside the job are being applied
    aborting,   // failed or cancelled; waits for its partitions
    victim,     // withdrawn to break a deadlock; waits to start again
  };
  class Run {
   public:
    RunId id;
    std::uint64_t order = 0;  // of the requests' arrival
    std::shared_ptr<const StepShape> step;
    Instant came{}, began{};  // times of the request and the newest attempt
    Instant deadline = kNever;
    bool asked = false;                // ExplainDeadline was sent
    std::optional<std::string> waits;  // its answer
    AttemptInfo attempt;               // listed by its number and snapshot: begin_attempt()
    std::uint64_t random_index = 0;
    CommitNumber grant = 0;
    bool revoking = false;                    // the grant is being revoked
    DatasetPlaces::Elements elements;         // taken at its first start
    std::shared_ptr<const std::string> note;  // kept with its commit; null: none
    OnNan on_nan = OnNan::commit;
    Commit commit = Commit::checked;
    CommitNumber behind = 0;  // RunAnswer::behind, once it is being prepared
    bool with_place = false;
    std::shared_ptr<const JobPlace> place;   // with_place: as of the attempt's start
    std::shared_ptr<const JobPlace> resume;  // the place of a job that it restores; null: none
    std::map<std::uint32_t, PartitionDone> done;
    Status cause;  // aborting: the best known cause; applying: what failed

    Phase phase() const { return phase_; }
    // Reported as waiting only for resources.
    bool waiting() const { return waiting_; }
    // Whether its deadline counts: it is not decided, and has not failed.
    bool may_time_out() const { return phase_ != Phase::aborting && phase_ != Phase::applying; }
    std::uint32_t conflicts() const { return conflicts_; }
    // Whether its snapshot is in use and executors may know its attempt.
    bool in_attempt() const;
    bool all_done() const { return done.size() == step->partitions.size(); }
    bool wrote() const;
    // Whether it may take a commit number, even without a write.
    bool may_commit() const { return step->may_write || note; }
    // Its fetches, in the client's order.
    std::vector<Fetched> fetches() const;
    // The number of its write keys by resource; `outside`: only resources seen outside the job.
    std::map<ResourceId, std::uint32_t> keys(bool outside) const;
    // By dataset of the step. Partitions that share a dataset count its elements alike.
    std::vector<std::uint64_t> used_elements() const;
    // What the run waits for, in one line without a line end.
    std::string text() const;

   private:
    friend class RunTable;
    // Whether messages of its attempt are sent again until they are answered.
    bool resent() const { return phase_ == Phase::running || phase_ == Phase::aborting; }

    Phase phase_ = Phase::queued;
    bool waiting_ = false;
    bool keeps_marks_ = false;  // of an earlier attempt
    std::uint32_t conflicts_ = 0;
    Instant deadline_at_ = kNever, resend_at_ = kNever, resend_after_{};
    std::list<Run*>::iterator in_phase_, in_attempts_, in_resends_;
  };
  using Runs = std::list<Run*>;

  RunTable() = default;
  RunTable(const RunTable&) = delete;
  RunTable& operator=(const RunTable&) = delete;

  // Queued. REQUIRES: there is no such run.
  Run& add(RunId id);
  void erase(const RunId& id);
  // To a phase after that. Runs are queued by add(), and run by begin_attempt().
  void move(Run& run, Phase phase);
  // It runs, in its new `attempt`: of the highest number so far, and of no older snapshot than
  // those before. Its messages are sent again after `resend_after`.
  void begin_attempt(Run& run, Instant now, Instant resend_after);
  // Its messages were, and are once more after twice that time, or `most`.
  void sent_again(Run& run, Instant now, Instant most);
  // When its deadline is to be looked at. REQUIRES: run.may_time_out(), or kNever.
  void look_at(Run& run, Instant deadline);
  void set_waiting(Run& run, bool waiting);
  void count_conflict(Run& run);
  Run* find(const RunId& id);
  // REQUIRES: there is such a run.
  const Run& at(const RunId& id) const { return runs_.at(id); }
  // Null unless that is its attempt.
  Run* find(const RunId& id, const AttemptId& attempt);
  bool contains(const RunId& id) const { return runs_.contains(id); }
  bool of_session(std::uint64_t session) const;
  // Whether a run restores the job.
  bool restoring() const;

  // In the order of arrival.
  template <class Wanted>
  std::vector<RunId> where(Wanted wanted) const {
    std::vector<const Run*> found;
    for (const auto& [id, run] : runs_)
      if (wanted(run)) found.push_back(&run);
    return by_arrival(found);
  }
  std::vector<RunId> ids() const {
    return where([](const Run&) { return true; });
  }
  // Those whose deadline is to be looked at, or whose messages are to be sent again.
  std::vector<RunId> due(Instant now) const;
  // The queued ones, into `ids`, whose memory is reused.
  void queued(std::vector<RunId>& ids) const;
  std::vector<RunId> queued() const {
    std::vector<RunId> ids;
    queued(ids);
    return ids;
  }
  // The first of the phase; null if there is none.
  Run* first_in(Phase phase);
  std::size_t count(Phase phase) const { return in_phase(phase).size(); }
  const Runs& in_phase(Phase phase) const { return phases_[std::size_t(phase)]; }

  std::size_t size() const { return runs_.size(); }
  bool empty() const { return runs_.empty(); }
  auto begin() { return runs_.begin(); }
  auto end() { return runs_.end(); }
  auto begin() const { return runs_.begin(); }
  auto end() const { return runs_.end(); }

  // The number of runs that compute, without those that only wait for resources.
  std::size_t computing() const { return count(Phase::running) - waiting_; }
  std::size_t waiting() const { return waiting_; }
  std::size_t attempts() const { return attempts_.size(); }
  // The number of runs that have been repeated because of a conflict.
  std::size_t contended() const { return contended_; }
  // When some run is due.
  Instant next_due() const;
  // The oldest snapshot that an attempt reads; `decided` if there is none.
  CommitNumber oldest_snapshot(CommitNumber decided) const;
  // The oldest attempt whose marks a run of that session still holds, or `from` if that is older.
  std::uint64_t marks_of_session(std::uint64_t session, std::uint64_t from) const;
  // The lowest random index from `first` on that no other attempt with the run's snapshot uses.
  std::uint64_t unused_random_index(const Run& run, std::uint64_t first) const;
  // All attempts, ascending.
  std::vector<LiveAttempt> live() const;

 private:
  struct Resends {
    Instant after{};
    Runs runs;  // the longer ago sent the earlier
  };
  static std::vector<RunId> by_arrival(std::vector<const Run*>& runs);
  // A new list element of the run, at the end.
  Runs::iterator append(Runs& to, Run& run);
  // The elements of lists that hold no run are kept.
  void drop(Runs& from, Runs::iterator at) { spare_.splice(spare_.begin(), from, at); }
  void enter(Run& run, Phase phase);
  void send_again(Run& run, Instant now, Instant after);
  Runs& resends(Instant after);
  void leave_attempt(Run& run);
  void stop_resends(Run& run);

  std::map<RunId, Run> runs_;
  std::uint64_t next_order_ = 1;
  std::array<Runs, 7> phases_;
  Runs attempts_;                 // ascending
  std::vector<Resends> resends_;  // few: each time is twice another one
  std::set<std::pair<Instant, RunId>> deadlines_;
  Runs spare_;
  std::size_t waiting_ = 0, contended_ = 0, keeping_marks_ = 0;
};

}  // namespace troupe
