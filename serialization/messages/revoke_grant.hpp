#pragma once

#include "core/ids.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to the executor that was granted a number: another attempt needs it. Reply: GrantReturned,
// unless the write with the number is under way, or the attempt has ended or not begun.
struct RevokeGrant {
  CompiledId compiled = 0;
  std::uint32_t partition = 0;
  AttemptId attempt;
  RunId run;
};

template <>
struct MessageAt<16> {
  using Type = RevokeGrant;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [compiled, partition, attempt, run] = m;
    return std::tie(compiled, partition, attempt, run);
  }
};

}  // namespace troupe
