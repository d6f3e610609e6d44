// The shards' reports of attempts that wait at their resources.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The newest BlockedReport of each shard, until it expires. Part of the coordinator.
class BlockedReports {
 public:
  // False if it is not newer than the shard's last report.
  bool take(const BlockedReport& message, Instant now);
  void erase(TaskId shard) { reports_.erase(shard); }
  // Shards repeat their reports; those that are not repeated are dropped. Whether one was, of runs
  // that wait.
  bool expire(Instant now);

  std::set<AttemptId> waiting() const;
  std::set<RunId> marked() const;  // the runs that hold what others wait for
  bool anybody_waits() const;
  std::size_t count() const;  // waiting attempts
  Instant next_expiry() const;

 private:
  struct Report {
    std::uint64_t sequence = 0;
    Instant at{};
    std::vector<AttemptId> waiting;
    std::vector<RunId> marked;
  };
  std::map<TaskId, Report> reports_;
};

}  // namespace troupe
