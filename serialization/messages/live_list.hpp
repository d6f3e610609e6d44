// LiveList (core/transaction.hpp) between processes.
#pragma once

#include "core/transaction.hpp"
#include "serialization/message.hpp"

namespace troupe {

template <>
struct Fields<LiveAttempt> {
  static auto of(auto& m) {
    auto& [a, run, marks_from, snapshot] = m;
    return std::tie(a, run, marks_from, snapshot);
  }
};
template <>
struct MessageAt<12> {
  using Type = LiveList;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [view, sequence, decided, min_live, next_a, live] = m;
    return std::tie(view, sequence, decided, min_live, next_a, live);
  }
  static Status check(const LiveList& m) {
    for (std::size_t i = 1; i < m.live.size(); ++i)
      if (m.live[i - 1].a >= m.live[i].a) return invalid_argument("live attempts out of order");
    return ok_status();
  }
};

}  // namespace troupe
