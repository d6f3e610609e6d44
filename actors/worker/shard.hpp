// A task's part in commits.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The state machine between the coordinator and the resources of one task. It passes PREPARE to the
// resources that the run wrote to, and answers STAGED when all of them have staged, or as soon as
// one fails. Withdrawing drops what they staged; applying is answered when they have applied it.
// The staged records are at the resources: the shard keeps no log.
//
// Owned by one actor. Messages from the coordinator may be lost, duplicated and reordered; those to
// the resources, in the same process, may not.
class Shard {
 public:
  // To one resource.
  struct StageResource {
    ResourceId resource;
    StageRequest request;
  };
  // To one resource.
  struct ResourceLive {
    ResourceId resource;
    LiveList list;
  };
  // To every executor of this task, and to its hub.
  struct TaskLive {
    LiveList list;
  };
  using Output = std::variant<StageResource, ResourceLive, TaskLive, Staged, BlockedReport>;
  using Outputs = std::vector<Output>;

  Shard(TaskId task, std::uint64_t view);

  void prepare(const Prepare& message, Outputs& out);
  void staged(ResourceId resource, const ResourceStaged& message, Outputs& out);
  void live(const LiveList& list, Outputs& out);
  // The resource wants to be told of lists, the last one included; or no more (ListWish). The cost
  // of a commit grows with the resources that do.
  void wish_lists(ResourceId resource, bool on, Outputs& out);
  // A resource reported the attempts that wait and the runs that hold marks there.
  void blocked(ResourceId resource, std::vector<AttemptId> waiting, std::vector<RunId> marked,
               Instant now, Outputs& out);
  // Repeats the report of blocked attempts while there are any. Called at next_wakeup().
  void tick(Instant now, Outputs& out);
  Instant next_wakeup() const { return next_report_; }

  bool at_rest() const { return !pending_ && blocked_.empty(); }

 private:
  struct Pending {
    std::set<ResourceId> missing;
    std::map<ResourceId, std::uint64_t> hashes;
  };
  struct Waits {
    std::vector<AttemptId> waiting;
    std::vector<RunId> marked;
  };
  void withdraw(const Prepare& message, Outputs& out);
  void answer_prepare(CommitNumber s, std::uint64_t hash, Status status, Outputs& out);
  void report(Instant now, Outputs& out);

  const TaskId task_;
  const std::uint64_t view_;
  std::uint64_t round_ = 0;         // of the last PREPARE
  std::optional<Prepare> staging_;  // the last order to stage
  std::pair<CommitNumber, AttemptId> waited_for_;
  std::optional<Pending> pending_;  // resources that have not answered
  std::optional<Staged> last_;      // repeated if PREPARE is
  LiveList live_;
  std::set<ResourceId> listening_;  // to lists
  std::map<ResourceId, Waits> blocked_;
  std::uint64_t report_sequence_ = 0;
  Instant next_report_ = kNever;
};

}  // namespace troupe
