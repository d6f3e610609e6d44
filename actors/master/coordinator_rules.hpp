// The rules by which the coordinator decides.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "actors/master/last_writes.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Each is a function of what it depends on. Production never gives others; tests break one at a
// time, to show that it would be noticed.
struct CoordinatorRules {
  // A run that used this, with that snapshot, has to be done once more. First committer wins.
  bool (*conflicts)(const LastWrites& last, const Uses& uses, CommitNumber snapshot) =
      [](const LastWrites& last, const Uses& uses, CommitNumber snapshot) {
        return last.after(snapshot, uses);
      };
  // No snapshot below it is read any more. `oldest`: of those in use, or `decided`.
  CommitNumber (*min_live)(CommitNumber decided, CommitNumber oldest) =
      [](CommitNumber, CommitNumber oldest) { return oldest; };
  // A round of PREPARE is over.
  bool (*complete)(const std::set<TaskId>& asked, const std::set<TaskId>& answered) =
      [](const std::set<TaskId>& asked, const std::set<TaskId>& answered) {
        return asked == answered;
      };
  // A number can be given: none is in a round of PREPARE, and none is granted.
  bool (*number_is_free)(std::optional<StageOrder> round, bool granted) =
      [](std::optional<StageOrder> round, bool granted) { return !round && !granted; };
  // A run that others have overtaken so often has the numbers to itself.
  bool (*goes_alone)(std::uint32_t conflicts, std::uint32_t patience) =
      [](std::uint32_t conflicts, std::uint32_t patience) { return conflicts >= patience; };
};

}  // namespace troupe
