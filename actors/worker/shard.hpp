// What a task answers for as a whole when a run is decided.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The machine between the coordinator and the resources of one task. PREPARE goes on to
// the resources the run wrote to; STAGED goes back when all of them have staged, or as soon as one
// says why it cannot. One that withdraws takes back what they staged; one that applies is answered
// when they have applied it. With one replica the shard keeps no log of its own: the staged records
// are at the resources. A backup will hang in here, between the last resource's answer and STAGED.
//
// Owned by one actor. The way from the coordinator may lose, double and reorder; that to the
// resources of the same process may not.
class Shard {
 public:
  // To one resource.
  struct StageResource {
    ResourceId resource;
    StageRequest request;
  };
  // To every resource of this task (and its executors).
  struct ResourceLive {
    LiveList list;
  };
  using Output = std::variant<StageResource, ResourceLive, Staged, BlockedReport>;
  using Outputs = std::vector<Output>;

  Shard(TaskId task, std::uint64_t view);

  void prepare(const Prepare& message, Outputs& out);
  void staged(ResourceId resource, const ResourceStaged& message, Outputs& out);
  void live(const LiveList& list, Outputs& out);
  // A resource said who waits and who holds marks there.
  void blocked(ResourceId resource, std::vector<AttemptId> waiting, std::vector<RunId> marked,
               Instant now, Outputs& out);
  // Repeats the report of blocked attempts while there are any. Call it at next_wakeup().
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
  std::uint64_t round_ = 0;         // of the PREPARE that came last
  std::optional<Prepare> staging_;  // that its resources were told to stage
  std::pair<CommitNumber, AttemptId> waited_for_;
  std::optional<Pending> pending_;  // what has not answered of that
  std::optional<Staged> last_;      // answered again when asked again
  LiveList live_;
  std::map<ResourceId, Waits> blocked_;
  std::uint64_t report_sequence_ = 0;
  Instant next_report_ = kNever;
};

}  // namespace troupe
