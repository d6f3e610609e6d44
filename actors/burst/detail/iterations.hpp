// How a step runs loops.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/burst/detail/channels.hpp"
#include "actors/burst/detail/device_work.hpp"
#include "actors/burst/detail/lane_turn.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/inbox.hpp"

namespace troupe::burst {

// The loops of one step: nodes of roles loop, loop_next and loop_cond.
//
// A frame runs one iteration at a time, in the counts and slots of its nodes. When all its nodes
// are done, the next values move into the slots of the body and the frame is reset. After the last
// iteration, the values move to the loop's node, which has waited until then.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Iterations {
 public:
  // All arguments live as long as this.
  Iterations(const LoadedPlan& program, Progress& progress, Channels& channels, DeviceWork& work,
             Tickets& tickets, LaneTurn& turn, Failure& failure);

  // Role loop: the first iteration begins. There is none on a branch that is not taken, or if the
  // predicate is false from the start.
  void run_loop(std::uint32_t node, bool dead);
  // Role loop_next: an iteration is over. The next one begins, or the loop ends.
  void run_next(std::uint32_t node, bool dead);
  // Role loop_cond: passes the predicate to all parts of a loop, once everything before it is done.
  void run_condition(std::uint32_t node);

  // The number of a frame's current iteration.
  std::int64_t number(std::uint32_t frame) const { return numbers_[frame]; }
  void set_number(std::uint32_t frame, std::int64_t number) { numbers_[frame] = number; }
  // The iteration numbers of a frame and of the frames around it, the outermost first.
  Tag around(std::uint32_t frame) const;

 private:
  bool truth(std::uint32_t node, std::uint32_t slot, bool& value);
  void move_on(std::uint32_t frame, std::uint32_t to);
  void begin_iteration(std::uint32_t frame);

  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  Progress& progress_;
  Channels& channels_;
  DeviceWork& work_;
  Tickets& tickets_;
  LaneTurn& turn_;
  Failure& failure_;
  std::vector<std::int64_t> numbers_;  // by frame
  std::vector<Slot> carried_;          // moving from one iteration to the next
};

}  // namespace troupe::burst
