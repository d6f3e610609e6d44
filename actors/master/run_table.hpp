// The unanswered runs of a job.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/master/step_shape.hpp"
#include "core/transaction.hpp"

namespace troupe {

// "step 4 of session 0", for errors.
std::string step_name(const RunId& run);

// The coordinator's state of each run, and what follows from all of them. Pointers to runs stay
// valid. Part of the coordinator.
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
  struct Run {
    RunId id;
    std::uint64_t order = 0;  // of the requests' arrival
    std::shared_ptr<const StepShape> step;
    Instant came{}, began{};  // times of the request and the newest attempt
    Instant deadline = kNever;
    bool asked = false;                // ExplainDeadline was sent
    std::optional<std::string> waits;  // its answer
    Phase phase = Phase::queued;
    AttemptInfo attempt;
    std::uint64_t random_index = 0;
    CommitNumber grant = 0;
    bool revoking = false;  // the grant is being revoked
    std::uint32_t conflicts = 0;
    DatasetPlaces::Elements elements;         // taken at its first start
    std::shared_ptr<const std::string> note;  // kept with its commit; null: none
    OnNan on_nan = OnNan::commit;
    Commit commit = Commit::checked;
    CommitNumber behind = 0;  // RunAnswer::behind, once it is being prepared
    bool with_place = false;
    std::shared_ptr<const JobPlace> place;   // with_place: as of the attempt's start
    std::shared_ptr<const JobPlace> resume;  // the place of a job that it restores; null: none
    bool waiting = false;                    // reported as waiting only for resources
    std::map<std::uint32_t, PartitionDone> done;
    Status cause;  // aborting: the best known cause; applying: what failed
    Instant resend_at = kNever, resend_after{};

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
  };

  // REQUIRES: there is no such run.
  Run& add(RunId id);
  void erase(const RunId& id) { runs_.erase(id); }
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
    std::vector<RunId> ids;
    where(wanted, ids);
    return ids;
  }
  // The same into `ids`, whose memory is reused.
  template <class Wanted>
  void where(Wanted wanted, std::vector<RunId>& ids) const {
    ids.clear();
    for (const auto& [id, run] : runs_)
      if (wanted(run)) ids.push_back(id);
    if (ids.size() > 1)
      std::sort(ids.begin(), ids.end(), [&](const RunId& a, const RunId& b) {
        return runs_.at(a).order < runs_.at(b).order;
      });
  }
  std::vector<RunId> in(Phase phase) const {
    return where([phase](const Run& run) { return run.phase == phase; });
  }
  void in(Phase phase, std::vector<RunId>& ids) const {
    where([phase](const Run& run) { return run.phase == phase; }, ids);
  }
  // The first of these; null if there is none.
  Run* first_in(Phase phase);
  std::vector<RunId> ids() const {
    return where([](const Run&) { return true; });
  }

  std::size_t size() const { return runs_.size(); }
  bool empty() const { return runs_.empty(); }
  auto begin() { return runs_.begin(); }
  auto end() { return runs_.end(); }
  auto begin() const { return runs_.begin(); }
  auto end() const { return runs_.end(); }

  // The number of runs that compute, without those that only wait for resources.
  std::size_t computing() const;
  // The oldest snapshot that an attempt reads; `decided` if there is none.
  CommitNumber oldest_snapshot(CommitNumber decided) const;
  // The oldest attempt whose marks a run of that session still holds, or `from` if that is older.
  std::uint64_t marks_of_session(std::uint64_t session, std::uint64_t from) const;
  // The lowest random index from `first` on that no other attempt with the run's snapshot uses.
  std::uint64_t unused_random_index(const Run& run, std::uint64_t first) const;
  // All attempts, ascending.
  std::vector<LiveAttempt> live() const;

 private:
  std::map<RunId, Run> runs_;
  std::uint64_t next_order_ = 1;
};

}  // namespace troupe
