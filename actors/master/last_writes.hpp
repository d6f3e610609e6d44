// Which commit changed a variable or queue last, for finding conflicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/transaction.hpp"

namespace troupe {

// Part of the coordinator. Only as much as a snapshot that is in use can tell apart.
class LastWrites {
 public:
  // Commit `s` used that.
  void note(const Uses& uses, CommitNumber s);
  // Something that a run saw, or replaced, was committed after its snapshot.
  bool after(CommitNumber snapshot, const Uses& uses) const;
  // Every snapshot from now on includes commit `least`: those up to it can conflict with nobody.
  void forget_up_to(CommitNumber least);

  bool empty() const { return writes_.empty() && enqueues_.empty(); }
  std::size_t size() const { return writes_.size() + enqueues_.size(); }

 private:
  std::unordered_map<std::uint64_t, CommitNumber> writes_, enqueues_;
};

}  // namespace troupe
