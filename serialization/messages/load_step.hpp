#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/status.hpp"
#include "graph/request.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to workers: compile a step and prepare the partitions of the task. Every task compiles the
// same graph for the same target, which is a pure function, and loads its own plans.
// Reply: StepLoaded.
struct LoadStep {
  CompiledId compiled = 0;
  std::uint64_t session = 0;
  std::uint64_t version = 0;  // of the graph
  CompileRequest request;
  std::vector<TargetDevice> devices;        // of the whole cluster
  std::map<std::string, DeviceName> fixed;  // placements that must not change
  bool soft_placement = true;
  std::vector<std::string> disabled_passes;
};

template <>
struct Fields<CompileRequest> {
  static auto of(auto& m) {
    auto& [feeds, fetches, targets, replicas] = m;
    return std::tie(feeds, fetches, targets, replicas);
  }
};
template <>
struct Fields<TargetDevice> {
  static auto of(auto& m) {
    auto& [name, space] = m;
    return std::tie(name, space);
  }
};
template <>
struct MessageAt<4> {
  using Type = LoadStep;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kBulk = true;
  static constexpr bool kShortWork = false;
  static auto fields(auto& m) {
    auto& [compiled, session, version, request, devices, fixed, soft_placement, disabled_passes] =
        m;
    return std::tie(compiled, session, version, request, devices, fixed, soft_placement,
                    disabled_passes);
  }
  static Status check(const LoadStep& m) {
    for (const TargetDevice& device : m.devices) {
      if (!device.name.full())
        return invalid_argument("'" + device.name.text() + "' is no full device name");
      if (device.space > MemorySpace::device)
        return invalid_argument("unknown memory space " + std::to_string(int(device.space)));
    }
    return ok_status();
  }
};

}  // namespace troupe
