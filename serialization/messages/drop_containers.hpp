#pragma once

#include <string>
#include <vector>

#include "serialization/message.hpp"

namespace troupe {

// Master to workers: delete the variables and queues of these containers; a later use creates new
// ones. Every step that uses one was unloaded before. No reply: done before any later LoadStep.
struct DropContainers {
  std::vector<std::string> containers;
};

template <>
struct MessageAt<15> {
  using Type = DropContainers;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kBulk = true;
  static constexpr bool kShortWork = false;
  static auto fields(auto& m) {
    auto& [containers] = m;
    return std::tie(containers);
  }
};

}  // namespace troupe
