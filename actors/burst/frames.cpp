// How a step repeats nodes: a frame has one iteration at a time, whose counts and slots are those
// of its nodes, and the loop's node waits until the last one is over.
#include <algorithm>
#include <cstring>

#include "actors/burst/detail/step.hpp"
#include "core/hash.hpp"
#include "core/list.hpp"

namespace troupe {
namespace {

// A burst with loops leaves its lane to others after that long. Looked at once for so many nodes.
constexpr std::int64_t kTurnNs = 2'000'000;
constexpr std::uint32_t kNodesPerLook = 64;

}  // namespace

// A loop that is on a branch not taken, or whose predicate is false from the start, repeats
// nothing.
void StepState::State::run_loop(std::uint32_t i, bool dead) {
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t f = program->frame_of_loop(i);
  const PlanFrame& frame = program->plan().frames[f];
  if (dead) {
    nodes_done += frame.nodes;
    return finish(i, true);
  }
  if (park_unless_done(i, 0, true)) return;
  const std::uint32_t* in = program->input_slots().data() + node.first_input;
  bool another = false;
  if (!truth(i, in[0], another)) return;
  const std::uint32_t to = another ? nodes[frame.body].first_slot : node.first_slot;
  for (std::uint32_t v = 0; v < frame.variables; ++v) slots[to + v] = take(in[1 + v]);
  if (!another) {
    nodes_done += frame.nodes;
    return finish(i, false);
  }
  for (std::uint32_t k = frame.variables; k < nodes[frame.body].outputs; ++k)
    slots[to + k] = slots[in[1 + k]];
  iterations[f] = 0;
  begin_iteration(f);
}

void StepState::State::run_next(std::uint32_t i, bool dead) {
  if (dead)
    return fail(i, invalid_argument("what it carries on is on a branch that was not taken"));
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t f = node.frame;
  const PlanFrame& frame = program->plan().frames[f];
  if (park_unless_done(i, 0, true)) return;
  if (has_had_its_turn(frame)) {
    if (failing()) return;  // elsewhere: it has had its chance to fail first
    make_room();
    ready[ready_end++] = i;
    yields = true;
    return;
  }
  const std::uint32_t* in = program->input_slots().data() + node.first_input;
  bool another = false;
  if (!truth(i, in[0], another)) return;
  if (kernel_place.spares && another && readers[in[0]] == 1)
    kernel_place.spares->put(slots[in[0]].tensor);
  move_on(f, another ? nodes[frame.body].first_slot : nodes[frame.loop].first_slot);
  if (another) {
    ++iterations[f];
    nodes_done -= frame.nodes - 1;  // which are to be done anew; this one is not counted yet
    return begin_iteration(f);
  }
  ++nodes_done;
  if (--readers[in[0]] == 0) slots[in[0]].tensor = {};
  const LoadedPlan::Node& body = nodes[frame.body];
  for (std::uint32_t k = frame.variables; k < body.outputs; ++k) slots[body.first_slot + k] = {};
  finish(frame.loop, false);
}

// Hands the predicate on, to all parts of a loop, once all that it comes after is over.
void StepState::State::run_condition(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  if (park_unless_done(i, 0, true)) return;
  slots[node.first_slot] = take(program->input_slots()[node.first_input]);
  finish(i, false);
}

// A list, and what is pushed onto it: of a branch that is not taken an entry without a value.
void StepState::State::run_keep(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t* in = program->input_slots().data() + node.first_input;
  if (slots[in[0]].dead) return finish(i, true);
  if (park_unless_done(i, 0, false)) return;
  Tensor list = take(in[0]).tensor;
  if (list.dtype() != DType::list) return fail(i, invalid_argument("it is pushed onto no list"));
  if (!list.unique()) list = list_tensor(list_in(std::as_const(list)));
  auto value = value_to_keep(i);
  if (!value.ok()) return fail(i, value.status());
  list_in(list).push(std::move(value->tensor));
  slots[node.first_slot] = {.tensor = std::move(list), .ticket = value->ticket};
  finish(i, false);
}

Expected<Slot> StepState::State::value_to_keep(std::uint32_t keep) {
  const std::uint32_t slot = input_slot(keep, 1);
  if (slots[slot].dead) return Slot{};
  if (program->asynchronous() && leaves_device(slot)) return copy_on_host(keep, slots[slot].tensor);
  if (!call_stack.calls.empty()) call_stack.hold(slots[slot].tensor);
  return take(slot);
}

// Takes it off again. What has no value is dead.
void StepState::State::run_kept(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t in = program->input_slots()[node.first_input];
  if (park_unless_done(i, 0, false)) return;
  const Tensor& given = slots[in].tensor;
  if (given.dtype() != DType::list || list_in(given).empty())
    return fail(i, invalid_argument("there is no list to take a value off"));
  const std::uint32_t rest = node.first_slot, taken = rest + 1;
  Tensor value = list_in(given).get(list_in(given).size() - 1);
  const bool dead = !value.defined();
  if (readers[taken] != 0 && !dead)
    if (Status placed = place(i, taken, std::move(value)); !placed.ok()) {
      if (!park_for_memory(i, placed)) fail(i, placed);
      return;
    }
  Tensor list = take(in).tensor;
  if (!list.unique()) list = list_tensor(list_in(std::as_const(list)));
  list_in(list).pop();
  release_inputs(node);
  if (dead) {
    slots[taken].dead = true;
    dead_slots.push_back(taken);
  }
  if (readers[rest] != 0) slots[rest] = {.tensor = std::move(list)};
  count_down_switch(node);
  ++nodes_done;
}

// take(), for a reader that takes it to another slot.
void StepState::State::take_to(std::uint32_t to, std::uint32_t from) {
  if (--readers[from] == 0)
    slots[to] = std::move(slots[from]);
  else
    slots[to] = slots[from];
}

// The next values of the frame's variables to the slots from `to` on. All other readers are done,
// so that the last of them here leaves its slot empty.
void StepState::State::move_on(std::uint32_t f, std::uint32_t to) {
  const PlanFrame& frame = program->plan().frames[f];
  const LoadedPlan::Node& next = nodes[frame.next];
  const std::uint32_t* in = program->input_slots().data() + next.first_input + 1;
  if (program->moves_in_order(f)) {
    for (std::uint32_t v = 0; v < frame.variables; ++v)
      if (in[v] != to + v) take_to(to + v, in[v]);
  } else {
    carried.clear();
    for (std::uint32_t v = 0; v < frame.variables; ++v)
      carried.push_back(take(in[v])), --readers[in[v]];
    for (std::uint32_t v = 0; v < frame.variables; ++v) slots[to + v] = std::move(carried[v]);
  }
}

// The predicate in a slot. False, and the step fails, where it is none.
bool StepState::State::truth(std::uint32_t i, std::uint32_t slot, bool& value) {
  const Tensor& predicate = slots[slot].tensor;
  if (slots[slot].dead || !predicate.defined() || predicate.dtype() != DType::bool_ ||
      predicate.elements() != 1) {
    fail(i, invalid_argument("the predicate of a loop must be one bool"));
    return false;
  }
  value = *predicate.data<bool>();
  return true;
}

// REQUIRES: variables and invariants are in the slots of the body.
void StepState::State::begin_iteration(std::uint32_t f) {
  const PlanFrame& frame = program->plan().frames[f];
  make_room();
  forget_waits();
  reset_frame(frame);
  ++turns[f];
  draws[f] = hash_combine(draws[frame.parent] ^ program->random_key(frame.loop),
                          std::uint64_t(iterations[f]));
  complete(frame.body, false);  // which drops what nobody reads
}

void StepState::State::reset_frame(const PlanFrame& frame) {
  std::memcpy(counts.data() + frame.first_node, program->counts().data() + frame.first_node,
              frame.nodes * sizeof counts[0]);
  if (frame.slots > 0)
    std::memcpy(readers.data() + frame.first_slot, program->readers().data() + frame.first_slot,
                frame.slots * sizeof readers[0]);
  std::memset(external.data() + frame.first_node, 0, frame.nodes);
  forget_dead(frame);
}

void StepState::State::forget_dead(const PlanFrame& frame) {
  if (dead_slots.empty()) return;
  std::erase_if(dead_slots, [&](std::uint32_t slot) {
    if (slot - frame.first_slot >= frame.slots) return false;
    slots[slot].dead = false;
    return true;
  });
}

// Until the next iteration of any loop begins each node becomes ready once at most.
void StepState::State::make_room() {
  if (ready_begin == ready_end) {
    ready_begin = ready_end = 0;
  } else if (ready_end + nodes.size() > ready.size()) {
    std::copy(ready.begin() + std::ptrdiff_t(ready_begin),
              ready.begin() + std::ptrdiff_t(ready_end), ready.begin());
    ready_end -= ready_begin;
    ready_begin = 0;
  }
}

// What is known to be done: else it would grow with the number of iterations.
void StepState::State::forget_waits() {
  if (!program->asynchronous()) return;
  std::erase_if(issued, [this](const Issued& work) { return done(work.ticket); });
  const auto open =
      std::find_if(waits.begin(), waits.end(), [](const OpenWait& w) { return w.open; });
  first_wait += std::uint32_t(open - waits.begin());
  waits.erase(waits.begin(), open);
}

bool StepState::State::has_had_its_turn(const PlanFrame& frame) {
  nodes_in_turn += frame.nodes;
  if (nodes_in_turn < kNodesPerLook) return false;
  nodes_in_turn = 0;
  const std::int64_t now = Trace::now_ns();
  if (turn_began_ns == 0) turn_began_ns = now;
  return now - turn_began_ns > kTurnNs;
}

// Of a node in loops and functions: in which iteration or call, from the innermost one outwards.
Status StepState::State::in_iterations(std::uint32_t node, Status status) const {
  const std::vector<PlanFrame>& frames = program->plan().frames;
  for (std::uint32_t f = nodes[node].frame; f != 0; f = frames[f].parent) {
    if (frames[f].is_function()) {
      status = status.in("in function " + frames[f].name + ", call " +
                         std::to_string(call_stack.calls.size()) + " of '" +
                         program->plan().info[frames[f].loop].name + "'");
      f = frames[f].leader;
      continue;
    }
    status =
        status.in("in iteration " + std::to_string(iterations[f]) + " of '" + frames[f].name + "'");
  }
  return status;
}

}  // namespace troupe
