// GrantReturned (core/transaction.hpp) between processes.
#pragma once

#include "core/transaction.hpp"
#include "serialization/message.hpp"

namespace troupe {

template <>
struct MessageAt<17> {
  using Type = GrantReturned;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [attempt, run] = m;
    return std::tie(attempt, run);
  }
};

}  // namespace troupe
