#pragma once

#include "serialization/message.hpp"

namespace troupe {

// Master to a task: report what its attempts wait for. Reply: TaskWaits with the same round.
struct AskWaits {
  std::uint64_t round = 0;
};

template <>
struct MessageAt<23> {
  using Type = AskWaits;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [round] = m;
    return std::tie(round);
  }
};

}  // namespace troupe
