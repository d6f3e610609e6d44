#pragma once

#include <vector>

#include "core/transaction.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to the executor of one partition: begin an attempt. Ignored for known or ended attempts.
// Reply: PartitionDone. Large or numerous feeds are undefined here: they are tensors on the data
// connection.
struct StartPartition {
  CompiledId compiled = 0;
  std::uint32_t partition = 0;
  AttemptInfo attempt;
  std::uint64_t random_index = 0;  // k of the random number counter
  CommitNumber grant = 0;          // fast path, or 0
  std::vector<Tensor> feeds;       // in the order of Plan::feeds
  // The elements of this run, for each dataset that the plan reads, in the order of its resources:
  // one for each replica, or any number (element_number()).
  std::vector<std::vector<std::uint64_t>> elements;
};

template <>
struct Fields<AttemptInfo> {
  static auto of(auto& m) {
    auto& [id, run, snapshot, marks_from, min_live, session_from] = m;
    return std::tie(id, run, snapshot, marks_from, min_live, session_from);
  }
};
template <>
struct MessageAt<7> {
  using Type = StartPartition;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [compiled, partition, attempt, random_index, grant, feeds, elements] = m;
    return std::tie(compiled, partition, attempt, random_index, grant, feeds, elements);
  }
};

}  // namespace troupe
