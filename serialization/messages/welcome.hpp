#pragma once

#include <string>
#include <vector>

#include "serialization/join.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to an admitted worker: its process number, the task that it hosts, and its settings.
struct Welcome {
  ProcessId process = 0;
  TaskId task{};
  std::uint32_t threads = 0;  // number of lanes; 0: one per core
  NumericProfile profile;
  std::vector<std::string> devices;  // device types to make, e.g. "CPU", "FAKE"
  std::uint64_t step_memory = 0;     // memory limit of a step in the process, bytes; 0: none
  bool cuda_sync = false;            // Cluster::cuda_sync
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
    auto& [process, task, threads, profile, devices, step_memory, cuda_sync] = m;
    return std::tie(process, task, threads, profile, devices, step_memory, cuda_sync);
  }
};

}  // namespace troupe
