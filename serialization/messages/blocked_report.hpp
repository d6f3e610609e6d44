// BlockedReport (core/transaction.hpp) between processes.
#pragma once

#include "troupe/core/transaction.hpp"
#include "troupe/serialization/message.hpp"

namespace troupe {

template <>
struct MessageAt<13> {
  using Type = BlockedReport;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [view, shard, sequence, waiting, marked] = m;
    return std::tie(view, shard, sequence, waiting, marked);
  }
  static ProcessId speaker(const BlockedReport& m) { return m.shard; }
};

}  // namespace troupe
