// What a step asks of its executor.
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
// A node that becomes ready joins a request of the same burst where StepRequest allows it, else it
// gets one of its own. The answer brings the outputs of all its nodes, which end then. What a step
// reads first of its variables is asked for when the step begins, before these nodes are ready.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Requests {
 public:
  // All arguments live as long as this.
  Requests(const LoadedPlan& program, Progress& progress, const Iterations& iterations,
           DeviceWork& work, Failure& failure);

  // Forgets the last step. Answers to its requests are ignored from now on.
  void reset();
  // Asks for LoadedPlan::first_reads.
  void read_first();
  // Role external: the node is ready and not dead. Its inputs go along.
  void run_external(std::uint32_t node);

  // The requests that were made since the last call.
  std::vector<StepRequest> take_made();
  // Forgets them instead: nobody will answer.
  void drop_made();
  // Its nodes end; a wrong answer, or a failed one, is the failure of a node.
  void answered(RequestAnswer& answer);
  // Requests that have no answer yet.
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
