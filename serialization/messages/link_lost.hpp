#pragma once

#include "core/ids.hpp"
#include "core/status.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Worker to master: its connection to another member of the view broke, or was never established.
struct LinkLost {
  ProcessId process = 0;  // the sender
  std::uint64_t view = 0;
  ProcessId other = 0;
  Status why;
};

template <>
struct MessageAt<18> {
  using Type = LinkLost;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::membership;
  static auto fields(auto& m) {
    auto& [process, view, other, why] = m;
    return std::tie(process, view, other, why);
  }
  static ProcessId speaker(const LinkLost& m) { return m.process; }
};

}  // namespace troupe
