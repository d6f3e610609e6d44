// How a step runs functions that call themselves: the frame of a function has one call at a time,
// that of the innermost. What it interrupts is kept aside and goes on when it returns, so that the
// depth of calls is one of arrays, not of the thread's stack.
#include <algorithm>
#include <cstring>

#include "actors/burst/detail/step.hpp"
#include "core/hash.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t kCallKey = 0x63616c6c;  // a call is no iteration

std::size_t words_for(std::size_t bytes) { return (bytes + 3) / 4; }

}  // namespace

// A call on a branch that is not taken calls nothing, else there would be no end.
void StepState::State::run_invoke(std::uint32_t i, bool dead) {
  const std::uint32_t f = program->frame_of_call(i);
  const PlanFrame& frame = program->plan().frames[f];
  const bool from_outside = frame.loop == i;
  if (dead) {
    if (from_outside) nodes_done += frame.nodes;
    return finish(i, true);
  }
  if (failing() && program->in_function(limit)) return;  // the first failure ends all calls
  if (has_had_its_turn(frame)) {
    make_room();
    ready[ready_end++] = i;
    yields = true;
    return;
  }
  if (Status room = room_for_call(frame); !room.ok()) return fail(i, room);
  const LoadedPlan::Node& node = nodes[i];
  carry_inputs(node);
  const std::uint64_t draw = hash_combine(draws[node.frame] ^ program->random_key(i), kCallKey);
  put_aside(i, f);
  for (std::uint32_t k = 0; k < node.inputs; ++k)
    slots[nodes[frame.body].first_slot + k] = std::move(carried[k]);
  draws[f] = draw;
  forget_waits_at_times();
  reset_frame(frame);
  complete(frame.body, false);  // which drops what nobody reads
}

void StepState::State::run_return(std::uint32_t i, bool dead) {
  if (dead) return fail(i, invalid_argument("what it returns is on a branch that was not taken"));
  const LoadedPlan::Node& node = nodes[i];
  carry_inputs(node);
  const std::uint32_t f = node.frame, caller = call_stack.calls.back().node;
  const PlanFrame& frame = program->plan().frames[f];
  ++nodes_done;
  nodes_done -= program->nodes_of_call(f);
  if (frame.loop == caller) nodes_done += frame.nodes;  // now all of them are done
  take_up(frame);
  for (std::uint32_t k = 0; k < nodes[caller].outputs; ++k)
    slots[nodes[caller].first_slot + k] = std::move(carried[k]);
  complete(caller, false);
}

// What a call takes, or gives back. The same value may stand there twice: its last reader takes it.
void StepState::State::carry_inputs(const LoadedPlan::Node& node) {
  const std::uint32_t* in = program->input_slots().data() + node.first_input;
  carried.clear();
  for (std::uint32_t k = 0; k < node.inputs; ++k) {
    carried.push_back(take(in[k]));
    if (--readers[in[k]] == 0) slots[in[k]].tensor = {};
  }
}

Status StepState::State::room_for_call(const PlanFrame& frame) const {
  const bool deep = call_stack.calls.size() >= limits.calls;
  if (!deep && call_stack.bytes() < limits.bytes) return {};
  return resource_exhausted("function " + frame.name + " is called " +
                            std::to_string(call_stack.calls.size()) + " deep, " +
                            (deep ? "which is as deep as calls go"
                                  : "and what waits for these calls takes more than " +
                                        std::to_string(limits.bytes >> 20) + " MiB"));
}

// All that is ready, or waits for work that was issued, goes on after the call; of a call from the
// inside the frame's counts and slots, too.
void StepState::State::put_aside(std::uint32_t i, std::uint32_t f) {
  CallStack& stack = call_stack;
  const PlanFrame& frame = program->plan().frames[f];
  CallStack::Call call{i, f, 0, stack.words.size(), stack.slots.size(), stack.draws.size()};
  stack.words.insert(stack.words.end(), ready.begin() + std::ptrdiff_t(ready_begin),
                     ready.begin() + std::ptrdiff_t(ready_end));
  for (OpenWait& wait : waits) {
    stack.words.insert(stack.words.end(), wait.nodes.begin(), wait.nodes.end());
    wait.nodes.clear();
  }
  call.ready = std::uint32_t(stack.words.size() - call.first_word);
  ready_begin = ready_end = 0;
  if (frame.loop != i) {
    put_frame_aside(frame);
    for (std::uint32_t inner = f; inner < program->end_of_frames(f); ++inner) {
      stack.draws.push_back(draws[inner]);
      stack.draws.push_back(std::uint64_t(iterations[inner]));
    }
  }
  stack.calls.push_back(call);
}

void StepState::State::put_frame_aside(const PlanFrame& frame) {
  std::vector<std::uint32_t>& words = call_stack.words;
  const std::size_t at = words.size();
  words.resize(at + frame.nodes + frame.slots + words_for(frame.nodes));
  std::uint32_t* to = words.data() + at;
  std::memcpy(to, counts.data() + frame.first_node, frame.nodes * sizeof counts[0]);
  to += frame.nodes;
  if (frame.slots > 0)
    std::memcpy(to, readers.data() + frame.first_slot, frame.slots * sizeof readers[0]);
  std::memcpy(to + frame.slots, external.data() + frame.first_node, frame.nodes);
  for (std::uint32_t slot = frame.first_slot; slot < frame.first_slot + frame.slots; ++slot) {
    Slot& from = slots[slot];
    if (!from.tensor.defined() && !from.dead) continue;
    call_stack.hold(from.tensor);
    call_stack.slots.emplace_back(slot, std::move(from));
    from = {};
  }
  forget_dead(frame);
}

// The end of the innermost call.
void StepState::State::take_up(const PlanFrame& frame) {
  CallStack& stack = call_stack;
  const CallStack::Call call = stack.calls.back();
  stack.calls.pop_back();
  forget_dead(frame);
  if (frame.loop != call.node) take_frame_up(frame, call);
  const std::size_t came = ready_end - ready_begin;  // meanwhile, from outside
  std::memmove(ready.data() + call.ready, ready.data() + ready_begin, came * sizeof ready[0]);
  if (call.ready > 0)
    std::memcpy(ready.data(), stack.words.data() + call.first_word, call.ready * sizeof ready[0]);
  ready_begin = 0;
  ready_end = call.ready + came;
  stack.words.resize(call.first_word);
  if (stack.calls.empty()) stack.let_all_go();
}

void StepState::State::take_frame_up(const PlanFrame& frame, const CallStack::Call& call) {
  CallStack& stack = call_stack;
  const std::uint32_t* from = stack.words.data() + call.first_word + call.ready;
  std::memcpy(counts.data() + frame.first_node, from, frame.nodes * sizeof counts[0]);
  from += frame.nodes;
  if (frame.slots > 0)
    std::memcpy(readers.data() + frame.first_slot, from, frame.slots * sizeof readers[0]);
  std::memcpy(external.data() + frame.first_node, from + frame.slots, frame.nodes);
  for (std::size_t s = call.first_slot; s < stack.slots.size(); ++s) {
    auto& [slot, value] = stack.slots[s];
    if (value.dead) dead_slots.push_back(slot);
    stack.let_go(value.tensor);
    slots[slot] = std::move(value);
  }
  stack.slots.resize(call.first_slot);
  std::uint32_t inner = call.frame;
  for (std::size_t d = call.first_draw; d < stack.draws.size(); d += 2, ++inner) {
    draws[inner] = stack.draws[d];
    iterations[inner] = std::int64_t(stack.draws[d + 1]);
  }
  stack.draws.resize(call.first_draw);
}

// After a failure: no call goes on, but what is outside of them may turn out to fail first.
void StepState::State::leave_calls() {
  std::vector<std::uint32_t> left;
  auto keep = [&](std::uint32_t entry) {
    if (!program->in_function(entry & ~LoadedPlan::kDead)) left.push_back(entry);
  };
  for (const CallStack::Call& call : call_stack.calls)
    for (std::uint32_t k = 0; k < call.ready; ++k) keep(call_stack.words[call.first_word + k]);
  for (std::size_t k = ready_begin; k < ready_end; ++k) keep(ready[k]);
  std::copy(left.begin(), left.end(), ready.begin());
  ready_begin = 0;
  ready_end = left.size();
  call_stack = {};
}

// Looks at all issued work, so once for twice as much.
void StepState::State::forget_waits_at_times() {
  if (issued.size() + waits.size() < forget_at) return;
  forget_waits();
  forget_at = 2 * (issued.size() + waits.size()) + 64;
}

}  // namespace troupe
