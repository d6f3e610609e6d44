// How a step runs functions that call themselves.
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
// The frame of a function has one call at a time, that of the innermost. What a call interrupts is
// kept aside and goes on when it returns: everything that is ready or waits for issued work, and,
// of a call from inside the function, the counts and slots of the frame. So the depth of calls is
// one of arrays, not of the thread's stack. A call beyond CallLimits fails: resource_exhausted.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Calls {
 public:
  // All arguments live as long as this.
  Calls(const LoadedPlan& program, const CallLimits& limits, Progress& progress,
        Iterations& iterations, Tickets& tickets, LaneTurn& turn, Failure& failure,
        CallStack& stack);

  // Role invoke. On a branch that is not taken it calls nothing, else there would be no end.
  void run_invoke(std::uint32_t node, bool dead);
  // Role function_return: the innermost call ends with the inputs of the node.
  void run_return(std::uint32_t node, bool dead);

  bool any() const { return !stack_.calls.empty(); }
  std::size_t depth() const { return stack_.calls.size(); }
  // A list keeps the value, maybe for as long as the calls: it counts in their memory.
  void count_kept(const Tensor& value) {
    if (any()) stack_.hold(value);
  }
  // After a failure: no call goes on, but what is outside of them may turn out to fail first.
  void leave();
  // The step is over: gives back what calls took unusually much of.
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
