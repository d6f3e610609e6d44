// BlockedReport (core/transaction.hpp) between processes.
#pragma once

#include <algorithm>
#include <string>

#include "core/transaction.hpp"
#include "serialization/message.hpp"

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
  static TaskId speaker(const BlockedReport& m) { return m.shard; }
  static Status check(const BlockedReport& m) {
    if (m.waiting.size() <= BlockedReport::kMost && m.marked.size() <= BlockedReport::kMost)
      return ok_status();
    return invalid_argument("a report of " +
                            std::to_string(std::max(m.waiting.size(), m.marked.size())) +
                            " runs that wait");
  }
};

}  // namespace troupe
