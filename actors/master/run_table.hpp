// The runs of a job that are not answered yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/master/step_shape.hpp"
#include "core/transaction.hpp"

namespace troupe {

// "step 4 of session 0", for errors.
std::string step_name(const RunId& run);

// What the coordinator knows of each run, and what follows from all of them. Elements stay where
// they are. Part of the coordinator.
class RunTable {
 public:
  enum class Phase : std::uint8_t {
    queued,     // waits for admission
    running,    // attempt started
    ready,      // all partitions done, waits for a number
    preparing,  // has a number, waits for the shards
    applying,   // decided; what it changes outside of the job is being applied
    aborting,   // failed or cancelled; waits for partitions to say so
    victim,     // withdrawn to break a deadlock, waits for its turn
  };
  struct Run {
    RunId id;
    std::uint64_t order = 0;  // in which the requests came
    std::shared_ptr<const StepShape> step;
    Instant came{}, began{};  // the request; its newest attempt
    Instant deadline = kNever;
    bool explained = false;  // the deadline has passed, and what it waits for is being found out
    Phase phase = Phase::queued;
    AttemptInfo attempt;
    std::uint64_t random_index = 0;
    CommitNumber grant = 0;
    bool revoking = false;  // the grant was asked back
    std::uint32_t conflicts = 0;
    DatasetPlaces::Elements elements;         // taken at its first start
    std::shared_ptr<const std::string> note;  // what is kept with its commit; null: none
    OnNan on_nan = OnNan::commit;
    bool with_place = false;
    JobPlace place;                          // with_place: when the attempt started
    std::shared_ptr<const JobPlace> resume;  // of a job that it restores; null: none
    bool waiting = false;                    // reported as waiting on resources only
    std::map<std::uint32_t, PartitionDone> done;
    Status cause;  // aborting: the best known; applying: what failed
    Instant resend_at = kNever, resend_after{};

    // Its snapshot is in use, and executors may know of its attempt.
    bool in_attempt() const;
    bool all_done() const { return done.size() == step->partitions.size(); }
    bool wrote() const;
    // It may take a number, even one that it leaves nothing at.
    bool may_commit() const { return step->may_write || note; }
    // Its fetches, in the client's order.
    std::vector<Fetched> fetches() const;
    // How many write keys it left at each resource; `outside`: at those that are seen outside.
    std::map<ResourceId, std::uint32_t> keys(bool outside) const;
    // By dataset of the step; partitions that use one together count its elements alike.
    std::vector<std::uint64_t> used_elements() const;
    // One line without its end: why it is not answered.
    std::string text() const;
  };

  // REQUIRES: there is no such run.
  Run& add(RunId id);
  void erase(const RunId& id) { runs_.erase(id); }
  Run* find(const RunId& id);
  // REQUIRES: there is such a run.
  const Run& at(const RunId& id) const { return runs_.at(id); }
  // Only if that is its attempt.
  Run* find(const RunId& id, const AttemptId& attempt);
  bool contains(const RunId& id) const { return runs_.contains(id); }
  bool of_session(std::uint64_t session) const;
  bool any(Phase phase) const;
  // A job is being restored.
  bool restoring() const;

  // In the order in which they came.
  template <class Wanted>
  std::vector<RunId> where(Wanted wanted) const {
    std::vector<const Run*> found;
    for (const auto& [id, run] : runs_)
      if (wanted(run)) found.push_back(&run);
    std::sort(found.begin(), found.end(),
              [](const Run* a, const Run* b) { return a->order < b->order; });
    std::vector<RunId> ids;
    for (const Run* run : found) ids.push_back(run->id);
    return ids;
  }
  std::vector<RunId> in(Phase phase) const {
    return where([phase](const Run& run) { return run.phase == phase; });
  }
  std::vector<RunId> ids() const {
    return where([](const Run&) { return true; });
  }

  std::size_t size() const { return runs_.size(); }
  bool empty() const { return runs_.empty(); }
  auto begin() { return runs_.begin(); }
  auto end() { return runs_.end(); }
  auto begin() const { return runs_.begin(); }
  auto end() const { return runs_.end(); }

  // Runs that compute; those that only wait for a queue have given their place back.
  std::size_t computing() const;
  // The oldest snapshot that an attempt reads; `decided` when there is none.
  CommitNumber oldest_snapshot(CommitNumber decided) const;
  // The first attempt whose marks an attempt of that session still holds, `from` or an older one.
  std::uint64_t marks_of_session(std::uint64_t session, std::uint64_t from) const;
  // A number that no other attempt with the run's snapshot draws random numbers by: the lowest from
  // `first` on.
  std::uint64_t unused_random_index(const Run& run, std::uint64_t first) const;
  // Its attempts, ascending.
  std::vector<LiveAttempt> live() const;

 private:
  std::map<RunId, Run> runs_;
  std::uint64_t next_order_ = 1;
};

}  // namespace troupe
