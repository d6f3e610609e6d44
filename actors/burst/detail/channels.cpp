#include "actors/burst/detail/channels.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/list.hpp"

namespace troupe::burst {

Channels::Channels(const LoadedPlan& program, Progress& progress, DeviceWork& work, Holders& memory,
                   Failure& failure)
    : program_(program),
      nodes_(program.nodes()),
      progress_(progress),
      work_(work),
      memory_(memory),
      failure_(failure),
      turns_(std::max<std::size_t>(program.plan().frames.size(), 1)) {}

void Channels::reset(StepOutbox& outbox) {
  outbox_ = &outbox;
  if (program_.has_loops()) std::fill(turns_.begin(), turns_.end(), 0);
  early_.clear();
}

void Channels::run_send(std::uint32_t i, bool dead) {
  if (!dead && work_.park_unless_done(i, 0, false)) return;
  Tensor tensor;
  if (!dead && nodes_[i].inputs > 0) {
    tensor = progress_.take(progress_.input_slot(i, 0)).tensor;
  } else {
    // A control edge, or a branch that was not taken.
    static const Tensor nothing = Tensor::of<std::uint8_t>(Shape{0}, {});
    tensor = nothing;
  }
  if (tensor.dtype() == DType::list)
    if (Status status = check_sent_depth(tensor); !status.ok()) return failure_.add(i, status);
  outbox_->send(program_.plan().info[i].channel, tag_of(i), std::move(tensor), dead);
  progress_.finish(i, false);
}

void Channels::run_recv(std::uint32_t i, bool dead) {
  if (nodes_[i].frame == 0) return progress_.want(i, dead);
  want_in_turn(i);
}

void Channels::arrived(TensorArrival& arrival) {
  if (failure_.failing()) return;
  const std::uint32_t node = program_.recv(arrival.channel);
  if (node == kNoNode || arrival.tag.depth() != (nodes_[node].frame == 0 ? 0 : 1))
    return failure_.add(
        kNoNode, invalid_argument("a tensor arrived on channel " + std::to_string(arrival.channel) +
                                  ", which this partition does not receive"));
  if (nodes_[node].frame != 0) return keep_for_its_turn(node, arrival);
  if (progress_.has_arrived(node)) return;  // sent again
  receive(node, arrival);
}

Tag Channels::tag_of(std::uint32_t send) const {
  const std::uint32_t frame = nodes_[send].frame;
  return frame == 0 ? Tag() : Tag(std::span(&turns_[frame], 1));
}

// The turn whose tensor a Recv takes in its current iteration; 0 or less: none.
std::int64_t Channels::turn_of(std::uint32_t recv) const {
  return turns_[nodes_[recv].frame] - std::int64_t{program_.lag(recv)};
}

void Channels::keep_for_its_turn(std::uint32_t recv, TensorArrival& arrival) {
  const std::int64_t turn = arrival.tag[0], now = turn_of(recv);
  const std::int64_t window = program_.plan().frames[nodes_[recv].frame].window;
  if (turn < 1 || turn > std::max<std::int64_t>(now, 0) + window)
    return failure_.add(
        recv, invalid_argument("a tensor arrived for iteration " + std::to_string(turn) +
                               " of this step, which is none of the " + std::to_string(window) +
                               " after " + std::to_string(now)));
  const auto again = [&](const TensorArrival& kept) {
    return kept.channel == arrival.channel && kept.tag == arrival.tag;
  };
  if (turn < now || (turn == now && progress_.has_arrived(recv)) ||
      std::any_of(early_.begin(), early_.end(), again))
    return;  // sent again
  if (turn == now && progress_.is_wanted(recv)) return receive(recv, arrival);
  early_.push_back(std::move(arrival));
}

// Its iteration has begun.
void Channels::want_in_turn(std::uint32_t recv) {
  const std::int64_t turn = turn_of(recv);
  if (turn < 1) {
    progress_.mark_arrived(recv);
    return progress_.complete(recv, false);
  }
  progress_.mark_wanted(recv);
  const auto there = std::find_if(early_.begin(), early_.end(), [&](const TensorArrival& kept) {
    return kept.tag[0] == turn && program_.recv(kept.channel) == recv;
  });
  if (there == early_.end()) return;
  TensorArrival arrival = std::move(*there);
  *there = std::move(early_.back());
  early_.pop_back();
  receive(recv, arrival);
}

void Channels::receive(std::uint32_t recv, TensorArrival& arrival) {
  if (arrival.dead) {
    progress_.mark_arriving_dead(recv);
  } else if (nodes_[recv].outputs > 0) {
    Expected<Tensor> tensor = std::move(arrival.tensor);
    if (tensor->dtype() == DType::list) tensor = memory_.adopt_elements(std::move(tensor).value());
    if (!tensor.ok()) return failure_.add(recv, tensor.status());
    Status placed = work_.place(recv, nodes_[recv].first_slot, std::move(tensor).value());
    if (!placed.ok()) return failure_.add(recv, placed);
  }
  progress_.arrive(recv);
}

}  // namespace troupe::burst
