// The last commit that changed each variable or queue, for finding conflicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/transaction.hpp"

namespace troupe {

// Keeps only commits after the oldest snapshot in use. Part of the coordinator.
class LastWrites {
 public:
  // Commit `s` had these uses.
  void note(const Uses& uses, CommitNumber s);
  // Whether something that a run read or replaced was committed after its snapshot.
  bool after(CommitNumber snapshot, const Uses& uses) const;
  // Every snapshot from now on includes commit `least`: commits up to it cannot conflict.
  void forget_up_to(CommitNumber least);

  bool empty() const { return writes_.empty() && enqueues_.empty(); }
  std::size_t size() const { return writes_.size() + enqueues_.size(); }

 private:
  std::unordered_map<std::uint64_t, CommitNumber> writes_, enqueues_;
};

}  // namespace troupe
