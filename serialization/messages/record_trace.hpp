#pragma once

#include "serialization/message.hpp"

namespace troupe {

// Master to a worker: start or stop recording spans. Reply to stop: TraceSpans.
struct RecordTrace {
  bool on = false;
};

template <>
struct MessageAt<20> {
  using Type = RecordTrace;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::membership;
  static auto fields(auto& m) {
    auto& [on] = m;
    return std::tie(on);
  }
};

}  // namespace troupe
