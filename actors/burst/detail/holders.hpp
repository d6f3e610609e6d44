// The memory of a step, counted where it has a limit, and who holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/burst/detail/call_stack.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/step_memory.hpp"

namespace troupe::burst {

// Where a step takes memory from. With a limit (StepInput::memory) everything is counted: what
// kernels and copies allocate, and by adopt() what comes from outside. A node that is refused
// memory by the limit fails with a status that names the largest holders among the step's values.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Holders {
 public:
  // `progress` and `calls` have the step's values; all arguments live as long as this.
  Holders(const LoadedPlan& program, Progress& progress, const CallStack& calls);

  // From now on what the step takes counts in `memory`; null: there is no limit.
  void count(std::shared_ptr<StepMemory> memory);

  // What the step's values in a memory space are allocated from.
  Allocator& allocator(MemorySpace space) const;
  // A tensor in host memory that came from outside counts as the step's unless somebody else has
  // it, too. resource_exhausted where the step may not have it.
  Expected<Tensor> adopt(Tensor tensor);
  // The same for the elements of a list that another process sent.
  Expected<Tensor> adopt_elements(Tensor list);

  // The failure of a node; one that the limit caused says so, and who holds the most.
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
  StepAllocatorPtr memory_, host_memory_;  // null without a limit; a CPU has one
};

}  // namespace troupe::burst
