#pragma once

#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/status.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Worker to master. Reply to Welcome (view 0): its devices exist, or the reason why not. Reply to
// Members: it is connected to every other member of that view.
struct Ready {
  ProcessId process = 0;
  std::vector<std::string> devices;  // full names
  Status status;                     // failed_precondition: cannot apply the profile
  std::uint64_t view = 0;
};

template <>
struct MessageAt<1> {
  using Type = Ready;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::membership;
  static auto fields(auto& m) {
    auto& [process, devices, status, view] = m;
    return std::tie(process, devices, status, view);
  }
  static ProcessId speaker(const Ready& m) { return m.process; }
};

}  // namespace troupe
