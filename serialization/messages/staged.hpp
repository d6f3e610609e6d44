// Staged (core/transaction.hpp) between processes.
#pragma once

#include "core/transaction.hpp"
#include "serialization/message.hpp"

namespace troupe {

template <>
struct MessageAt<11> {
  using Type = Staged;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [view, shard, s, hash, round, status] = m;
    return std::tie(view, shard, s, hash, round, status);
  }
  static TaskId speaker(const Staged& m) { return m.shard; }
};

}  // namespace troupe
