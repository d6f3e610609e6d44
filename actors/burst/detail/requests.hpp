// What a step requests from its executor.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/burst/detail/device_work.hpp"
#include "actors/burst/detail/iterations.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/step_state.hpp"

namespace troupe::burst {

// The requests of one step: nodes of role external, whose work the executor carries out.
//
// A node that becomes ready joins a request of the same burst if StepRequest allows it; else it
// gets its own. The answer contains the outputs of all its nodes, which then end. The first reads
// of variables are requested when the step begins, before these nodes are ready.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Requests {
 public:
  // All arguments live as long as this.
  Requests(const LoadedPlan& program, Progress& progress, const Iterations& iterations,
           DeviceWork& work, Failure& failure);

  // Starts a new step. Answers to older requests are ignored from now on.
  void reset();
  // Requests LoadedPlan::first_reads.
  void read_first();
  // Role external: the node is ready and not dead. The request takes its inputs.
  void run_external(std::uint32_t node);

  // The requests made since the last call.
  std::vector<StepRequest> take_made();
  // Discards them: they will not be answered.
  void drop_made();
  // The request's nodes end; a wrong or failed answer is the failure of a node.
  void answered(RequestAnswer& answer);
  // The requests that have no answer yet.
  std::vector<std::uint32_t> unanswered() const;
  // Per Plan::resources: writes and queue operations answered ok. Once per step.
  std::vector<std::uint32_t> take_keys() { return std::move(keys_); }

 private:
  struct Open {
    std::vector<std::uint32_t> nodes;
    bool open = false;
  };

  StepRequest& join(std::uint32_t node);
  bool may_join(const StepRequest& request, const PlanInfo& info) const;
  Status take_outputs(std::uint32_t node, std::vector<Tensor>& outputs, std::size_t& next);
  void forget_answered();

  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  Progress& progress_;
  const Iterations& iterations_;
  DeviceWork& work_;
  Failure& failure_;
  std::uint32_t first_ = 0;  // ids below are of earlier steps
  std::vector<Open> all_;
  std::vector<StepRequest> made_;
  std::vector<std::uint32_t> keys_;
};

}  // namespace troupe::burst
