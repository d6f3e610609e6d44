#pragma once

#include <string>
#include <vector>

#include "serialization/message.hpp"

namespace troupe {

// Drop the variables and queues of these containers: whoever names one later makes it anew. Every
// step that uses one was unloaded before. Master to workers. No reply: it is done before whatever
// is sent later.
struct DropContainers {
  std::vector<std::string> containers;
};

template <>
struct MessageAt<15> {
  using Type = DropContainers;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = false;
  static auto fields(auto& m) {
    auto& [containers] = m;
    return std::tie(containers);
  }
};

}  // namespace troupe
