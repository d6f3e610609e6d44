#pragma once

#include <string>
#include <vector>

#include "core/ids.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to every worker when the set of members changes. A worker connects to new members with a
// lower number, and disconnects from those that are no longer members. Reply: Ready, or LinkLost.
struct Member {
  ProcessId process = 0;
  TaskId task{};  // hosted there
  std::uint64_t incarnation = 0;
  std::string host;
  std::uint16_t port = 0;
};
struct Members {
  std::uint64_t view = 0;
  std::vector<Member> members;
};

template <>
struct Fields<Member> {
  static auto of(auto& m) {
    auto& [process, task, incarnation, host, port] = m;
    return std::tie(process, task, incarnation, host, port);
  }
};
template <>
struct MessageAt<2> {
  using Type = Members;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::membership;
  static auto fields(auto& m) {
    auto& [view, members] = m;
    return std::tie(view, members);
  }
};

}  // namespace troupe
