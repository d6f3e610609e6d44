// Values that a loop or call keeps for its gradient.
#pragma once

#include <cstdint>

#include "actors/burst/detail/calls.hpp"
#include "actors/burst/detail/device_work.hpp"
#include "actors/burst/detail/progress.hpp"

namespace troupe::burst {

// Nodes of roles keep and kept: one pushes a value onto a list, the other pops it.
//
// On a branch that is not taken, an entry without a value is pushed, which is dead when popped: so
// the list has one entry for each iteration. A large value leaves a device that is nearly full.
//
// Owned by the step; used by the burst in flight, or between bursts.
class KeptValues {
 public:
  // All arguments live as long as this.
  KeptValues(const LoadedPlan& program, Progress& progress, DeviceWork& work, Calls& calls,
             Failure& failure);

  void run_keep(std::uint32_t node);
  void run_kept(std::uint32_t node);

 private:
  Expected<Slot> value_to_keep(std::uint32_t keep);

  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  Progress& progress_;
  DeviceWork& work_;
  Calls& calls_;
  Failure& failure_;
};

}  // namespace troupe::burst
