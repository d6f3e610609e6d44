#pragma once

#include <string>
#include <vector>

#include "serialization/join.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to a worker that was admitted: who it is, and the task that it hosts.
struct Welcome {
  ProcessId process = 0;
  TaskId task{};
  std::uint32_t threads = 0;  // lanes to use; 0: as many as cores
  NumericProfile profile;
  std::vector<std::string> devices;  // device types to make, e.g. "CPU", "FAKE"
  std::uint64_t step_memory = 0;     // bytes that a step may hold in the process; 0: no limit
};

template <>
struct Fields<NumericProfile> {
  static auto of(auto& m) {
    auto& [isa, kernels, l1, l2, l3] = m;
    return std::tie(isa, kernels, l1, l2, l3);
  }
};
template <>
struct MessageAt<0> {
  using Type = Welcome;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::membership;
  static auto fields(auto& m) {
    auto& [process, task, threads, profile, devices, step_memory] = m;
    return std::tie(process, task, threads, profile, devices, step_memory);
  }
};

}  // namespace troupe
