#pragma once

#include "core/status.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to all: the job ends; disconnect.
struct Leave {
  Status why;
};

template <>
struct MessageAt<14> {
  using Type = Leave;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::membership;
  static auto fields(auto& m) {
    auto& [why] = m;
    return std::tie(why);
  }
};

}  // namespace troupe
