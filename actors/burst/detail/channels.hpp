// The tensors that a step sends to other partitions, and those that it receives.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/burst/detail/device_work.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/step_state.hpp"

namespace troupe::burst {

// The channels of one step: nodes of roles send and recv.
//
// Outside loops a channel carries one tensor. In a loop with parts on several devices it carries
// one for each turn: an iteration of the part's frame, counted from 1 over the whole step. A part
// may be ahead of another by at most PlanFrame::window turns; a tensor that arrives early is kept.
// A duplicate is ignored; a tensor for a turn or channel that is not expected fails the step.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Channels {
 public:
  // All arguments live as long as this.
  Channels(const LoadedPlan& program, Progress& progress, DeviceWork& work, Holders& memory,
           Failure& failure);

  // A new step, which sends to `outbox`.
  void reset(StepOutbox& outbox);
  // An iteration of a frame begins.
  void begin_turn(std::uint32_t frame) { ++turns_[frame]; }

  // Role send. A dead node, and one without input, sends an empty tensor.
  void run_send(std::uint32_t node, bool dead);
  // Role recv: the node is ready for its tensor.
  void run_recv(std::uint32_t node, bool dead);
  void arrived(TensorArrival& arrival);

 private:
  Tag tag_of(std::uint32_t send) const;
  std::int64_t turn_of(std::uint32_t recv) const;
  void want_in_turn(std::uint32_t recv);
  void keep_for_its_turn(std::uint32_t recv, TensorArrival& arrival);
  void receive(std::uint32_t recv, TensorArrival& arrival);

  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  Progress& progress_;
  DeviceWork& work_;
  Holders& memory_;
  Failure& failure_;
  StepOutbox* outbox_ = nullptr;
  std::vector<std::int64_t> turns_;   // turns begun in this step, by frame
  std::vector<TensorArrival> early_;  // for later turns
};

}  // namespace troupe::burst
