#pragma once

#include "core/ids.hpp"
#include "core/status.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Worker to master: it has made ready its partitions of the step, or why it could not.
struct StepLoaded {
  CompiledId compiled = 0;
  ProcessId process = 0;
  Status status;
};

template <>
struct MessageAt<5> {
  using Type = StepLoaded;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = false;
  static auto fields(auto& m) {
    auto& [compiled, process, status] = m;
    return std::tie(compiled, process, status);
  }
  static ProcessId speaker(const StepLoaded& m) { return m.process; }
};

}  // namespace troupe
