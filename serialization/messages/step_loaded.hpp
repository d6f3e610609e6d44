#pragma once

#include "core/ids.hpp"
#include "core/status.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Worker to master: the task's partitions of the step are ready, or the reason why not.
struct StepLoaded {
  CompiledId compiled = 0;
  TaskId task{};
  Status status;
};

template <>
struct MessageAt<5> {
  using Type = StepLoaded;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = false;
  static auto fields(auto& m) {
    auto& [compiled, task, status] = m;
    return std::tie(compiled, task, status);
  }
  static TaskId speaker(const StepLoaded& m) { return m.task; }
};

}  // namespace troupe
