// How a step repeats nodes.
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
// A frame has one iteration at a time, whose counts and slots are those of its nodes. When all its
// nodes are done, the next values move into the slots of the body and the frame is reset; after the
// last iteration the values move to the loop's node, which has waited until then.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Iterations {
 public:
  // All arguments live as long as this.
  Iterations(const LoadedPlan& program, Progress& progress, Channels& channels, DeviceWork& work,
             Tickets& tickets, LaneTurn& turn, Failure& failure);

  // Role loop: the first iteration begins. A loop that is on a branch not taken, or whose predicate
  // is false from the start, repeats nothing.
  void run_loop(std::uint32_t node, bool dead);
  // Role loop_next: an iteration is over. The next one begins, or the loop ends.
  void run_next(std::uint32_t node, bool dead);
  // Role loop_cond: hands the predicate on, to all parts of a loop, once all that it comes after is
  // over.
  void run_condition(std::uint32_t node);

  // The number of the iteration that a frame is in.
  std::int64_t number(std::uint32_t frame) const { return numbers_[frame]; }
  void set_number(std::uint32_t frame, std::int64_t number) { numbers_[frame] = number; }
  // Those of a frame and of the frames around it, the outermost first.
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
  std::vector<Slot> carried_;          // on the way from one iteration to the next
};

}  // namespace troupe::burst
