// Prepare (core/transaction.hpp) between processes.
#pragma once

#include <string>

#include "core/transaction.hpp"
#include "serialization/message.hpp"

namespace troupe {

template <>
struct MessageAt<10> {
  using Type = Prepare;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [view, s, attempt, run, resources, min_live, round, order] = m;
    return std::tie(view, s, attempt, run, resources, min_live, round, order);
  }
  static Status check(const Prepare& m) {
    if (m.order <= StageOrder::apply) return ok_status();
    return invalid_argument("unknown order of a commit " + std::to_string(int(m.order)));
  }
};

}  // namespace troupe
