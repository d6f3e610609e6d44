// The memory of a step, counted if it has a limit, and its holders.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/burst/detail/call_stack.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/step_memory.hpp"

namespace troupe::burst {

// The source of a step's memory. With a limit (StepInput::memory) everything is counted:
// allocations of kernels and copies, and by adopt() what comes from outside. A node that the limit
// refuses memory fails with a status that names the largest holders among the step's values.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Holders {
 public:
  // `progress` and `calls` hold the step's values; all arguments live as long as this.
  Holders(const LoadedPlan& program, Progress& progress, const CallStack& calls);

  // Counts the step's memory in `memory` from now on; null: no limit.
  void count(std::shared_ptr<StepMemory> memory);

  // The allocator for the step's values in a memory space.
  Allocator& allocator(MemorySpace space) const;
  // Counts a tensor in host memory that came from outside, unless somebody else holds it, too.
  // resource_exhausted if the limit refuses it.
  Expected<Tensor> adopt(Tensor tensor);
  // The same for the elements of a list that another process sent.
  Expected<Tensor> adopt_elements(Tensor list);

  // The failure of a node. If the limit caused it, it names the limit and the largest holders; if
  // the device is out of memory, those of the device.
  Status explain(const Status& failure);

 private:
  std::string largest() const;
  std::uint32_t saved_in(std::uint32_t list_slot) const;
  std::string maker_of(std::uint32_t slot) const;

  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  Device& device_;
  Progress& progress_;
  const CallStack& calls_;
  StepAllocatorPtr memory_, host_memory_;  // null without a limit; a CPU has only memory_
};

}  // namespace troupe::burst
