// What the parts of a loop on several devices send each other: a tensor on each channel in each
// iteration. A part may be ahead of another one, so that a tensor may come before its turn.
#include <algorithm>

#include "actors/burst/detail/step.hpp"

namespace troupe {

Tag StepState::State::tag_of(std::uint32_t send) const {
  const std::uint32_t frame = nodes[send].frame;
  return frame == 0 ? Tag() : Tag(std::span(&turns[frame], 1));
}

// The turn whose tensor a Recv takes in the iteration that it is in; 0 or less: none.
std::int64_t StepState::State::turn_of(std::uint32_t recv) const {
  return turns[nodes[recv].frame] - std::int64_t{program->lag(recv)};
}

void StepState::State::keep_for_its_turn(std::uint32_t recv, TensorArrival& arrival) {
  const std::int64_t turn = arrival.tag[0], now = turn_of(recv);
  const std::int64_t window = program->plan().frames[nodes[recv].frame].window;
  if (turn < 1 || turn > std::max<std::int64_t>(now, 0) + window)
    return fail(recv, invalid_argument("a tensor arrived for iteration " + std::to_string(turn) +
                                       " of this step, which is none of the " +
                                       std::to_string(window) + " after " + std::to_string(now)));
  const auto again = [&](const TensorArrival& kept) {
    return kept.channel == arrival.channel && kept.tag == arrival.tag;
  };
  if (turn < now || (turn == now && (external[recv] & kArrived)) ||
      std::any_of(early.begin(), early.end(), again))
    return;  // sent again
  if (turn == now && (external[recv] & kWanted)) return receive(recv, arrival);
  early.push_back(std::move(arrival));
}

// Its iteration has begun.
void StepState::State::want_in_turn(std::uint32_t recv) {
  const std::int64_t turn = turn_of(recv);
  if (turn < 1) {
    external[recv] |= kArrived;
    return complete(recv, false);
  }
  external[recv] |= kWanted;
  const auto there = std::find_if(early.begin(), early.end(), [&](const TensorArrival& kept) {
    return kept.tag[0] == turn && program->recv(kept.channel) == recv;
  });
  if (there == early.end()) return;
  TensorArrival arrival = std::move(*there);
  *there = std::move(early.back());
  early.pop_back();
  receive(recv, arrival);
}

}  // namespace troupe
