#pragma once

#include <cstdint>

#include "serialization/message.hpp"

namespace troupe {

// Master to workers: the session is closed, and no more steps of its graph will be compiled.
struct ForgetGraph {
  std::uint64_t session = 0;
};

template <>
struct MessageAt<22> {
  using Type = ForgetGraph;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kBulk = true;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [session] = m;
    return std::tie(session);
  }
};

}  // namespace troupe
