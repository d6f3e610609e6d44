// What shards said of the attempts that wait at their resources.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The newest BlockedReport of each shard, as long as it is believed. Part of the coordinator.
class BlockedReports {
 public:
  // False: it is not newer than what the shard said before.
  bool take(const BlockedReport& message, Instant now);
  void erase(TaskId shard) { reports_.erase(shard); }
  // Shards repeat their reports; those that are not repeated are dropped.
  void expire(Instant now);

  std::set<AttemptId> waiting() const;
  std::set<RunId> marked() const;  // the runs that hold what somebody waits for
  bool anybody_waits() const;
  std::size_t count() const;  // of those that wait
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
