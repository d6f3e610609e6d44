// Which elements of a dataset are made before anybody asks for them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace troupe {

// A run takes one element for each of its N replicas, so a replica that took element p takes p + N
// next. What replicas elsewhere will take is not made here.
//
// Owned by the dataset's actor. No elements in here: their owner says how many it holds.
class ReadAhead {
 public:
  // `most` elements are made ahead for each replica; 0: none.
  explicit ReadAhead(std::uint64_t most) : most_(most) {}

  // The replica asks for `position` of a run that takes `elements`. True: it does not go on from
  // where it was (a job resumed, a pass began anew), so what is held for it is of no use.
  bool asked(std::uint32_t replica, std::uint64_t position, std::uint64_t elements);

  // The element to make next, when `held` wait already.
  std::optional<std::uint64_t> next(std::size_t held) const;
  // next() was made.
  void made();

 private:
  struct Line {
    std::uint64_t next = 0;  // to make
    std::uint64_t stride = 1;
  };
  const std::uint64_t most_;
  std::map<std::uint32_t, Line> lines_;  // by replica
};

}  // namespace troupe
