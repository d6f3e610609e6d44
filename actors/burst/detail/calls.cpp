#include "actors/burst/detail/calls.hpp"

#include <utility>

#include "core/hash.hpp"

namespace troupe::burst {
namespace {

constexpr std::uint64_t kCallKey = 0x63616c6c;  // keeps draws of calls and iterations apart

}  // namespace

Calls::Calls(const LoadedPlan& program, const CallLimits& limits, Progress& progress,
             Iterations& iterations, Tickets& tickets, LaneTurn& turn, Failure& failure,
             CallStack& stack)
    : program_(program),
      nodes_(program.nodes()),
      limits_(limits),
      progress_(progress),
      iterations_(iterations),
      tickets_(tickets),
      turn_(turn),
      failure_(failure),
      stack_(stack) {}

void Calls::run_invoke(std::uint32_t i, bool dead) {
  const std::uint32_t f = program_.frame_of_call(i);
  const PlanFrame& frame = program_.plan().frames[f];
  const bool from_outside = frame.loop == i;
  if (dead) {
    if (from_outside) progress_.count_done(frame.nodes);
    return progress_.finish(i, true);
  }
  // The first failure ends all calls.
  if (failure_.failing() && program_.in_function(failure_.first_stopped())) return;
  if (turn_.is_over(frame.nodes)) {
    progress_.make_room();
    progress_.push_ready(i);
    return turn_.yield();
  }
  if (Status room = room_for_call(frame); !room.ok()) return failure_.add(i, room);
  const LoadedPlan::Node& node = nodes_[i];
  carry_inputs(i);
  const std::uint64_t draw =
      hash_combine(progress_.draw(node.frame) ^ program_.random_key(i), kCallKey);
  put_aside(i, f);
  for (std::uint32_t k = 0; k < node.inputs; ++k)
    progress_.slot(nodes_[frame.body].first_slot + k) = std::move(carried_[k]);
  progress_.set_draw(f, draw);
  tickets_.forget_done_at_times();
  progress_.reset_frame(frame);
  progress_.complete(frame.body, false);  // releases arguments without readers
}

void Calls::run_return(std::uint32_t i, bool dead) {
  if (dead)
    return failure_.add(i, invalid_argument("what it returns is on a branch that was not taken"));
  carry_inputs(i);
  const std::uint32_t f = nodes_[i].frame, caller = stack_.calls.back().node;
  const PlanFrame& frame = program_.plan().frames[f];
  progress_.count_done(1);
  progress_.count_undone(program_.nodes_of_call(f));
  if (frame.loop == caller) progress_.count_done(frame.nodes);  // now all of them are done
  take_up(frame);
  for (std::uint32_t k = 0; k < nodes_[caller].outputs; ++k)
    progress_.slot(nodes_[caller].first_slot + k) = std::move(carried_[k]);
  progress_.complete(caller, false);
}

// Arguments of a call, or results. A value may occur twice: it is moved for its last reader.
void Calls::carry_inputs(std::uint32_t i) {
  carried_.clear();
  for (std::uint32_t k = 0; k < nodes_[i].inputs; ++k) {
    const std::uint32_t in = progress_.input_slot(i, k);
    carried_.push_back(progress_.take(in));
    progress_.release(in);
  }
}

Status Calls::room_for_call(const PlanFrame& frame) const {
  const bool deep = depth() >= limits_.calls;
  if (!deep && stack_.bytes() < limits_.bytes) return {};
  return resource_exhausted("function " + frame.name + " is called " + std::to_string(depth()) +
                            " deep, " +
                            (deep ? "which is as deep as calls go"
                                  : "and what waits for these calls takes more than " +
                                        std::to_string(limits_.bytes >> 20) + " MiB"));
}

void Calls::put_aside(std::uint32_t i, std::uint32_t f) {
  const PlanFrame& frame = program_.plan().frames[f];
  CallStack::Call call{i, f, 0, stack_.words.size(), stack_.slots.size(), stack_.draws.size()};
  progress_.take_ready(stack_.words);
  tickets_.take_waiting(stack_.words);
  call.ready = std::uint32_t(stack_.words.size() - call.first_word);
  if (frame.loop != i) {
    progress_.save(frame, stack_.words);
    put_slots_aside(frame);
    for (std::uint32_t inner = f; inner < program_.end_of_frames(f); ++inner) {
      stack_.draws.push_back(progress_.draw(inner));
      stack_.draws.push_back(std::uint64_t(iterations_.number(inner)));
    }
  }
  stack_.calls.push_back(call);
}

void Calls::put_slots_aside(const PlanFrame& frame) {
  for (std::uint32_t slot = frame.first_slot; slot < frame.first_slot + frame.slots; ++slot) {
    Slot& from = progress_.slot(slot);
    if (!from.tensor.defined() && !from.dead) continue;
    stack_.hold(from.tensor);
    stack_.slots.emplace_back(slot, std::move(from));
    from = {};
  }
  progress_.forget_dead(frame);
}

// The end of the innermost call. Nodes outside that became ready meanwhile run after the
// interrupted ones.
void Calls::take_up(const PlanFrame& frame) {
  const CallStack::Call call = stack_.calls.back();
  stack_.calls.pop_back();
  progress_.forget_dead(frame);
  if (frame.loop != call.node) take_frame_up(frame, call);
  progress_.put_back_ready(stack_.words.data() + call.first_word, call.ready);
  stack_.words.resize(call.first_word);
  if (stack_.calls.empty()) stack_.let_all_go();
}

void Calls::take_frame_up(const PlanFrame& frame, const CallStack::Call& call) {
  progress_.load(frame, stack_.words.data() + call.first_word + call.ready);
  for (std::size_t s = call.first_slot; s < stack_.slots.size(); ++s) {
    auto& [slot, value] = stack_.slots[s];
    if (value.dead) progress_.mark_dead(slot);
    stack_.let_go(value.tensor);
    progress_.slot(slot) = std::move(value);
  }
  stack_.slots.resize(call.first_slot);
  std::uint32_t inner = call.frame;
  for (std::size_t d = call.first_draw; d < stack_.draws.size(); d += 2, ++inner) {
    progress_.set_draw(inner, stack_.draws[d]);
    iterations_.set_number(inner, std::int64_t(stack_.draws[d + 1]));
  }
  stack_.draws.resize(call.first_draw);
}

void Calls::leave() {
  std::vector<std::uint32_t> left;
  const auto keep = [&](std::uint32_t entry) {
    if (!program_.in_function(entry & ~LoadedPlan::kDead)) left.push_back(entry);
  };
  for (const CallStack::Call& call : stack_.calls)
    for (std::uint32_t k = 0; k < call.ready; ++k) keep(stack_.words[call.first_word + k]);
  std::vector<std::uint32_t> ready;
  progress_.take_ready(ready);
  for (std::uint32_t entry : ready) keep(entry);
  progress_.put_back_ready(left.data(), std::uint32_t(left.size()));
  stack_ = {};
}

void Calls::shrink() {
  if (stack_.words.capacity() > CallStack::kKeptWords) stack_ = {};
}

}  // namespace troupe::burst
