#pragma once

#include "core/ids.hpp"
#include "core/status.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to an executor: abort an attempt, as Coordinator::AbortAttempt describes.
struct AbortPartition {
  CompiledId compiled = 0;
  std::uint32_t partition = 0;
  AttemptId attempt;
  RunId run;
  Status cause;
};

template <>
struct MessageAt<8> {
  using Type = AbortPartition;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [compiled, partition, attempt, run, cause] = m;
    return std::tie(compiled, partition, attempt, run, cause);
  }
};

}  // namespace troupe
