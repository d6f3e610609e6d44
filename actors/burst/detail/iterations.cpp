#include "actors/burst/detail/iterations.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/hash.hpp"

namespace troupe::burst {

Iterations::Iterations(const LoadedPlan& program, Progress& progress, Channels& channels,
                       DeviceWork& work, Tickets& tickets, LaneTurn& turn, Failure& failure)
    : program_(program),
      nodes_(program.nodes()),
      progress_(progress),
      channels_(channels),
      work_(work),
      tickets_(tickets),
      turn_(turn),
      failure_(failure),
      numbers_(std::max<std::size_t>(program.plan().frames.size(), 1)) {}

void Iterations::run_loop(std::uint32_t i, bool dead) {
  const LoadedPlan::Node& node = nodes_[i];
  const std::uint32_t f = program_.frame_of_loop(i);
  const PlanFrame& frame = program_.plan().frames[f];
  if (dead) {
    progress_.count_done(frame.nodes);
    return progress_.finish(i, true);
  }
  if (work_.park_unless_done(i, 0, true)) return;
  const std::uint32_t* in = program_.input_slots().data() + node.first_input;
  bool another = false;
  if (!truth(i, in[0], another)) return;
  const std::uint32_t to = another ? nodes_[frame.body].first_slot : node.first_slot;
  for (std::uint32_t v = 0; v < frame.variables; ++v)
    progress_.slot(to + v) = progress_.take(in[1 + v]);
  if (!another) {
    progress_.count_done(frame.nodes);
    return progress_.finish(i, false);
  }
  for (std::uint32_t k = frame.variables; k < nodes_[frame.body].outputs; ++k)
    progress_.slot(to + k) = progress_.slot(in[1 + k]);
  numbers_[f] = 0;
  begin_iteration(f);
}

void Iterations::run_next(std::uint32_t i, bool dead) {
  if (dead)
    return failure_.add(i,
                        invalid_argument("what it carries on is on a branch that was not taken"));
  const LoadedPlan::Node& node = nodes_[i];
  const std::uint32_t f = node.frame;
  const PlanFrame& frame = program_.plan().frames[f];
  if (work_.park_unless_done(i, 0, true)) return;
  if (turn_.is_over(frame.nodes)) {
    if (failure_.failing()) return;  // elsewhere: this iteration did not fail first
    progress_.make_room();
    progress_.push_ready(i);
    return turn_.yield();
  }
  const std::uint32_t predicate = progress_.input_slot(i, 0);
  bool another = false;
  if (!truth(i, predicate, another)) return;
  if (another && progress_.readers(predicate) == 1) progress_.spare(predicate);
  move_on(f, another ? nodes_[frame.body].first_slot : nodes_[frame.loop].first_slot);
  if (another) {
    ++numbers_[f];
    // Its nodes run again; this one is not counted yet.
    progress_.count_undone(frame.nodes - 1);
    return begin_iteration(f);
  }
  progress_.count_done(1);
  progress_.release(predicate);
  const LoadedPlan::Node& body = nodes_[frame.body];
  for (std::uint32_t k = frame.variables; k < body.outputs; ++k)
    progress_.slot(body.first_slot + k) = {};
  progress_.finish(frame.loop, false);
}

void Iterations::run_condition(std::uint32_t i) {
  if (work_.park_unless_done(i, 0, true)) return;
  progress_.slot(nodes_[i].first_slot) = progress_.take(progress_.input_slot(i, 0));
  progress_.finish(i, false);
}

// Moves the next values of the frame's variables to the slots from `to` on. All other readers are
// done, so the last read here empties a slot.
void Iterations::move_on(std::uint32_t f, std::uint32_t to) {
  const PlanFrame& frame = program_.plan().frames[f];
  const LoadedPlan::Node& next = nodes_[frame.next];
  const std::uint32_t* in = program_.input_slots().data() + next.first_input + 1;
  if (program_.moves_in_order(f)) {
    for (std::uint32_t v = 0; v < frame.variables; ++v)
      if (in[v] != to + v) progress_.take_to(progress_.slot(to + v), in[v]);
  } else {
    carried_.resize(frame.variables);
    for (std::uint32_t v = 0; v < frame.variables; ++v) progress_.take_to(carried_[v], in[v]);
    for (std::uint32_t v = 0; v < frame.variables; ++v)
      progress_.slot(to + v) = std::move(carried_[v]);
  }
}

// Reads the predicate in a slot. Returns false, and the step fails, if it is not a predicate.
bool Iterations::truth(std::uint32_t i, std::uint32_t s, bool& value) {
  const Slot& slot = progress_.slot(s);
  const Tensor& predicate = slot.tensor;
  if (slot.dead || !predicate.defined() || predicate.dtype() != DType::bool_ ||
      predicate.elements() != 1) {
    failure_.add(i, invalid_argument("the predicate of a loop must be one bool"));
    return false;
  }
  value = *predicate.data<bool>();
  return true;
}

// REQUIRES: variables and invariants are in the slots of the body.
void Iterations::begin_iteration(std::uint32_t f) {
  const PlanFrame& frame = program_.plan().frames[f];
  progress_.make_room();
  tickets_.forget_done();
  progress_.reset_frame(frame);
  channels_.begin_turn(f);
  progress_.set_draw(f, hash_combine(progress_.draw(frame.parent) ^ program_.random_key(frame.loop),
                                     std::uint64_t(numbers_[f])));
  progress_.complete(frame.body, false);  // releases variables without readers
}

Tag Iterations::around(std::uint32_t frame) const {
  std::array<std::int64_t, Tag::kMaxDepth> inwards{};
  std::size_t first = inwards.size();
  for (std::uint32_t f = frame; f != 0 && first > 0; f = program_.plan().frames[f].parent)
    inwards[--first] = numbers_[f];
  return Tag(std::span(inwards).subspan(first));
}

}  // namespace troupe::burst
