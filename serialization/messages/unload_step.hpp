#pragma once

#include "core/ids.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to workers: the step will not run again.
struct UnloadStep {
  CompiledId compiled = 0;
};

template <>
struct MessageAt<6> {
  using Type = UnloadStep;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kBulk = true;
  static constexpr bool kShortWork = false;
  static auto fields(auto& m) {
    auto& [compiled] = m;
    return std::tie(compiled);
  }
};

}  // namespace troupe
