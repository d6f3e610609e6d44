// How a step runs branches.
#pragma once

#include <cstdint>

#include "actors/burst/detail/device_work.hpp"
#include "actors/burst/detail/progress.hpp"

namespace troupe::burst {

// Nodes of roles switch and merge. A Switch makes all its outputs dead except the selected one. A
// Merge passes on its one live input, and is dead if it has none. Two live inputs are a fault of
// the plan: an internal error.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Switches {
 public:
  // All arguments live as long as this.
  Switches(const LoadedPlan& program, Progress& progress, DeviceWork& work, Failure& failure);

  void run_switch(std::uint32_t node);
  void run_merge(std::uint32_t node);

 private:
  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  Progress& progress_;
  DeviceWork& work_;
  Failure& failure_;
};

}  // namespace troupe::burst
