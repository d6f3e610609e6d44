// Selects the elements of a dataset to make ahead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace troupe {

// A run takes one element for each of its N replicas, so a replica that took element p takes p + N
// next. Only elements for replicas of this process are made.
//
// Owned by the dataset's actor, which holds the elements.
class ReadAhead {
 public:
  // `most` elements are made ahead for each replica; 0: none.
  explicit ReadAhead(std::uint64_t most) : most_(most) {}

  // The replica requests `position` for a run that takes `elements`. True if it does not continue
  // from its last position (a resumed job, a new pass): elements held for it are of no use.
  bool asked(std::uint32_t replica, std::uint64_t position, std::uint64_t elements);

  // Whether a replica of this process may come to this position. Which replicas these are is known
  // once one of them has requested an element for a second run.
  bool awaited(std::uint64_t position) const;

  // The element to make next, if `held` are already waiting.
  std::optional<std::uint64_t> next(std::size_t held) const;
  // The element from next() was made.
  void made();

 private:
  struct Line {
    std::uint64_t next = 0;  // position to make
    std::uint64_t stride = 1;
  };
  const std::uint64_t most_;
  std::map<std::uint32_t, Line> lines_;  // by replica
  bool all_known_ = false;               // has a line for each replica of this process
};

}  // namespace troupe
