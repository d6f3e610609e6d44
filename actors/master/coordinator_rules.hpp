// The rules by which the coordinator decides.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "actors/master/last_writes.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Each rule is a pure function. Production uses these; tests replace one at a time with a wrong
// one, to show that this is noticed.
struct CoordinatorRules {
  // Whether a run with these uses and this snapshot must be repeated. The first committer wins.
  bool (*conflicts)(const LastWrites& last, const Uses& uses, CommitNumber snapshot) =
      [](const LastWrites& last, const Uses& uses, CommitNumber snapshot) {
        return last.after(snapshot, uses);
      };
  // The lowest snapshot that may still be read. `oldest`: the oldest in use, or `decided`.
  CommitNumber (*min_live)(CommitNumber decided, CommitNumber oldest) =
      [](CommitNumber, CommitNumber oldest) { return oldest; };
  // Whether a round of PREPARE is over.
  bool (*complete)(const std::set<TaskId>& asked, const std::set<TaskId>& answered) =
      [](const std::set<TaskId>& asked, const std::set<TaskId>& answered) {
        return asked == answered;
      };
  // Whether a number can be assigned: none is in a round of PREPARE, and none is granted.
  bool (*number_is_free)(std::optional<StageOrder> round, bool granted) =
      [](std::optional<StageOrder> round, bool granted) { return !round && !granted; };
  // Whether a run with that many conflicts has the numbers to itself.
  bool (*goes_alone)(std::uint32_t conflicts, std::uint32_t patience) =
      [](std::uint32_t conflicts, std::uint32_t patience) { return conflicts >= patience; };
};

}  // namespace troupe
