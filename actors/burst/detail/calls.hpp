// How a step runs recursive functions.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/burst/detail/call_stack.hpp"
#include "actors/burst/detail/iterations.hpp"
#include "actors/burst/detail/lane_turn.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/detail/tickets.hpp"
#include "actors/burst/step_state.hpp"

namespace troupe::burst {

// The calls of one step: nodes of roles invoke and function_return.
//
// The frame of a function holds one call at a time, the innermost. What a call interrupts is saved,
// and goes on when it returns: all nodes that are ready or wait for issued work and, for a call
// from inside the function, the counts and slots of the frame. So calls grow arrays, not the
// thread's stack. A call beyond CallLimits fails: resource_exhausted.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Calls {
 public:
  // All arguments live as long as this.
  Calls(const LoadedPlan& program, const CallLimits& limits, Progress& progress,
        Iterations& iterations, Tickets& tickets, LaneTurn& turn, Failure& failure,
        CallStack& stack);

  // Role invoke. Calls nothing on a branch that is not taken: that ends a recursion.
  void run_invoke(std::uint32_t node, bool dead);
  // Role function_return: the innermost call returns the inputs of the node.
  void run_return(std::uint32_t node, bool dead);

  bool any() const { return !stack_.calls.empty(); }
  std::size_t depth() const { return stack_.calls.size(); }
  // A list keeps the value, possibly as long as the calls: it counts as their memory.
  void count_kept(const Tensor& value) {
    if (any()) stack_.hold(value);
  }
  // After a failure: ends all calls. Nodes outside them still run, since they may fail first.
  void leave();
  // The step is over: frees the stack if it is unusually large.
  void shrink();

 private:
  void carry_inputs(std::uint32_t node);
  Status room_for_call(const PlanFrame& frame) const;
  void put_aside(std::uint32_t node, std::uint32_t frame);
  void put_slots_aside(const PlanFrame& frame);
  void take_up(const PlanFrame& frame);
  void take_frame_up(const PlanFrame& frame, const CallStack::Call& call);

  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  const CallLimits limits_;
  Progress& progress_;
  Iterations& iterations_;
  Tickets& tickets_;
  LaneTurn& turn_;
  Failure& failure_;
  CallStack& stack_;
  std::vector<Slot> carried_;  // into a call and out of it
};

}  // namespace troupe::burst
