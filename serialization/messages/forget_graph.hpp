#pragma once

#include <cstdint>

#include "serialization/message.hpp"

namespace troupe {

// The session is closed: nobody will compile a step of its graph again. Master to workers.
struct ForgetGraph {
  std::uint64_t session = 0;
};

template <>
struct MessageAt<22> {
  using Type = ForgetGraph;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [session] = m;
    return std::tie(session);
  }
};

}  // namespace troupe
