// How a step runs its nodes: the hot loop, and the roles it handles itself but for loops.
#include "actors/burst/detail/step.hpp"
#include "core/list.hpp"

namespace troupe {

// Everything an ordinary node needs is in this function. What is dead, failed, or not an ordinary
// kernel has an entry past `limit` or no flag, and leaves the fast path there. With `cheap` it may
// stop while nodes are ready, and says so.
bool StepState::State::loop(bool cheap) {
  const LoadedPlan::Node* const all = nodes.data();
  const LoadedPlan::Edge* const edges = program->edges().data();
  std::size_t left = kCheapNodes;
  for (;;) {
    if (!inbox.empty()) drain();
    if (ready_begin == ready_end) return false;
    const std::uint32_t entry = ready[ready_begin];
    if (cheap && (left-- == 0 || costly(entry))) return true;
    ++ready_begin;
    if (entry >= limit || !(all[entry].flags & LoadedPlan::kOrdinary) || trace) {
      visit(entry);
      if (yields) return true;
      continue;
    }
    const LoadedPlan::Node& node = all[entry];
    KernelContext ctx = context(entry);
    Status ran = result_of(*node.kernel, ctx);
    if (!ran.ok()) {
      fail(entry, ran);
      continue;
    }
    release_inputs(node);
    const LoadedPlan::Edge* edge = edges + node.first_edge;
    for (const LoadedPlan::Edge* end = edge + node.edges; edge != end; ++edge) {
      if (*edge & LoadedPlan::kMerge) {
        count_down_merge(node, *edge, false);
        continue;
      }
      std::uint32_t left = --counts[*edge];
      if (left << 1 == 0) ready[ready_end++] = *edge | left;
    }
    ++nodes_done;
  }
}

bool StepState::State::costly(std::uint32_t entry) const {
  return entry < limit && !(nodes[entry].flags & LoadedPlan::kCheap);
}

namespace {

// After a failure only kernels before it run on, and loops and calls that hold some: one of them
// may be the failure to report.
bool may_fail_first(Role role) {
  return role == Role::kernel || role == Role::loop || role == Role::loop_next ||
         role == Role::invoke || role == Role::function_return;
}

}  // namespace

void StepState::State::visit(std::uint32_t entry) {
  const bool dead = entry & LoadedPlan::kDead;
  const std::uint32_t node = entry & ~LoadedPlan::kDead;
  if (node >= limit || (failing() && !may_fail_first(nodes[node].role))) return;
  if (!trace) return visit_role(node, dead);
  std::int64_t begin = Trace::now_ns();
  visit_role(node, dead);
  if (!dead)
    trace->record({.name = program->plan().info[node].name, .run = input.trace_run}, begin,
                  Trace::now_ns());
}

void StepState::State::visit_role(std::uint32_t node, bool dead) {
  switch (nodes[node].role) {
    case Role::merge:
      return run_merge(node);
    case Role::control_trigger:
      return finish(node, false);
    case Role::send:
      return run_send(node, dead);
    case Role::recv:
      return nodes[node].frame == 0 ? want(node, dead) : want_in_turn(node);
    case Role::loop:
      return run_loop(node, dead);
    case Role::loop_next:
      return run_next(node, dead);
    case Role::invoke:
      return run_invoke(node, dead);
    case Role::function_return:
      return run_return(node, dead);
    case Role::keep:
      return run_keep(node);
    default:
      break;
  }
  if (dead) return finish(node, true);
  switch (nodes[node].role) {
    case Role::kernel:
      return program->asynchronous() ? issue_kernel(node) : run_kernel(node);
    case Role::switch_:
      return run_switch(node);
    case Role::loop_cond:
      return run_condition(node);
    case Role::kept:
      return run_kept(node);
    case Role::copy:
      return issue_copy(node);
    case Role::placeholder:
      for (std::uint32_t k = 0; k < nodes[node].outputs; ++k)
        if (std::uint32_t slot = nodes[node].first_slot + k;
            readers[slot] != 0 && !slots[slot].tensor.defined())
          return fail(node, invalid_argument("is not fed"));
      return finish(node, false);
    case Role::external:
      return request(node);
    default:
      return finish(node, false);
  }
}

void StepState::State::run_kernel(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  KernelContext ctx = context(i);
  Status ran = result_of(*node.kernel, ctx);
  if (!ran.ok()) return fail(i, ran);
  finish(i, false);
}

void StepState::State::run_send(std::uint32_t i, bool dead) {
  if (!dead && park_unless_done(i, 0, false)) return;
  Tensor tensor;
  if (!dead && nodes[i].inputs > 0) {
    tensor = take(program->input_slots()[nodes[i].first_input]).tensor;
  } else {
    // A control edge, or a branch not taken: what crosses is that it happened.
    static const Tensor nothing = Tensor::of<std::uint8_t>(Shape{0}, {});
    tensor = nothing;
  }
  if (tensor.dtype() == DType::list)
    if (Status status = check_sent_depth(tensor); !status.ok()) return fail(i, status);
  outbox->send(program->plan().info[i].channel, tag_of(i), std::move(tensor), dead);
  finish(i, false);
}

// Which output of a Switch is live: of two 0 when the predicate is false and 1 when it is true;
// else the one of that index, or the last.
Expected<std::uint32_t> StepState::State::side_taken(const Tensor& selector,
                                                     std::uint32_t outputs) const {
  if (selector.elements() != 1) return invalid_argument("the predicate or index must be one value");
  std::int64_t index = 0;
  if (selector.dtype() == DType::bool_ && outputs == 2)
    index = *selector.data<bool>() ? 1 : 0;
  else if (selector.dtype() == DType::i32)
    index = *selector.data<std::int32_t>();
  else if (selector.dtype() == DType::i64)
    index = *selector.data<std::int64_t>();
  else
    return invalid_argument("the predicate must be one bool");
  return index < 0 || index >= outputs ? outputs - 1 : std::uint32_t(index);
}

// All outputs but one are dead.
void StepState::State::run_switch(std::uint32_t i) {
  if (park_unless_done(i, 1, false)) return;
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t* in = program->input_slots().data() + node.first_input;
  auto side = side_taken(slots[in[1]].tensor, node.outputs);
  if (!side.ok()) return fail(i, side.status());
  const std::uint32_t taken = node.first_slot + *side;
  for (std::uint32_t slot = node.first_slot; slot < node.first_slot + node.outputs; ++slot) {
    if (slot == taken) continue;
    slots[slot].dead = true;
    dead_slots.push_back(slot);
  }
  slots[taken] = take(in[0]);
  release_inputs(node);
  if (readers[taken] == 0) slots[taken] = {};
  count_down_switch(node);
  ++nodes_done;
}

// The first live input, and its index; dead when all of them are.
void StepState::State::run_merge(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t* in = program->input_slots().data() + node.first_input;
  std::uint32_t live = 0, chosen = 0;
  for (std::uint32_t k = node.inputs; k-- > 0;) {
    if (slots[in[k]].dead || !slots[in[k]].tensor.defined()) continue;
    ++live;
    chosen = k;
  }
  if (live > 1) return fail(i, internal_error("Merge: two inputs are live"));
  external[i] |= kRan;
  counts[i] = (counts[i] & 0xffff) | (chosen + 1) << 16;
  if (live == 0) return finish(i, true);
  slots[node.first_slot] = take(in[chosen]);
  if (node.outputs > 1)
    if (Status placed = place(i, node.first_slot + 1, Tensor::scalar(std::int32_t(chosen)));
        !placed.ok())
      return fail(i, placed);
  finish(i, false);
}

// What follows a node that is done: its inputs lose a reader, its successors an edge.
void StepState::State::finish(std::uint32_t i, bool dead) {
  release_inputs(nodes[i]);
  complete(i, dead);
}

void StepState::State::complete(std::uint32_t i, bool dead) {
  const LoadedPlan::Node& node = nodes[i];
  for (std::uint32_t slot = node.first_slot; slot < node.first_slot + node.outputs; ++slot) {
    if (dead) {
      slots[slot].dead = true;
      dead_slots.push_back(slot);
    } else if (readers[slot] == 0) {
      slots[slot] = {};
    }
  }
  count_down(node, dead);
  ++nodes_done;
}

void StepState::State::count_down(const LoadedPlan::Node& from, bool dead) {
  for (std::uint32_t e = 0; e < from.edges; ++e) {
    LoadedPlan::Edge edge = program->edges()[from.first_edge + e];
    if (edge & LoadedPlan::kMerge) {
      count_down_merge(from, edge, dead);
      continue;
    }
    std::uint32_t left = --counts[edge];
    if (dead) left = counts[edge] |= LoadedPlan::kDead;
    if (left << 1 == 0) ready[ready_end++] = edge | left;
  }
}

void StepState::State::count_down_merge(const LoadedPlan::Node& from, LoadedPlan::Edge edge,
                                        bool dead) {
  const std::uint32_t merge = edge & LoadedPlan::kEdgeNode;
  std::uint32_t& count = counts[merge];
  if (edge & LoadedPlan::kControl) {
    count -= LoadedPlan::kMergeControl;
  } else {
    --count;
    const bool live = !dead && feeds_live(from, nodes[merge]);
    if (external[merge] & kRan) {
      const std::uint32_t taken =
          program->input_slots()[nodes[merge].first_input + (count >> 16) - 1];
      if (live && taken - from.first_slot >= from.outputs)
        fail(merge, internal_error("Merge: two inputs are live"));
      return;
    }
    if (!(count & LoadedPlan::kMergeWaits)) return;
    // In a loop the next iteration must find nothing of this one under way: all branches are over.
    if ((!live || nodes[merge].frame != 0) && (count & 0xffff) != 0) return;
    count &= ~LoadedPlan::kMergeWaits;
  }
  if (count >> 16 == 0) ready[ready_end++] = merge;
}

// Of a Switch one output is live: a successor is dead when it reads another one.
void StepState::State::count_down_switch(const LoadedPlan::Node& from) {
  for (std::uint32_t e = 0; e < from.edges; ++e) {
    LoadedPlan::Edge edge = program->edges()[from.first_edge + e];
    if (edge & LoadedPlan::kMerge) {
      count_down_merge(from, edge, false);
      continue;
    }
    const LoadedPlan::Node& to = nodes[edge];
    for (std::uint32_t k = 0; k < to.inputs; ++k) {
      std::uint32_t slot = program->input_slots()[to.first_input + k];
      if (slot - from.first_slot < from.outputs && slots[slot].dead)
        counts[edge] |= LoadedPlan::kDead;
    }
    std::uint32_t left = --counts[edge];
    if (left << 1 == 0) ready[ready_end++] = edge | left;
  }
}

bool StepState::State::feeds_live(const LoadedPlan::Node& from,
                                  const LoadedPlan::Node& merge) const {
  for (std::uint32_t k = 0; k < merge.inputs; ++k) {
    std::uint32_t slot = program->input_slots()[merge.first_input + k];
    if (slot - from.first_slot < from.outputs && !slots[slot].dead) return true;
  }
  return false;
}

// The tensor for a reader that keeps it: moved for the last one. The caller still releases it.
Slot StepState::State::take(std::uint32_t slot) {
  return readers[slot] == 1 ? std::move(slots[slot]) : slots[slot];
}

void StepState::State::release_inputs(const LoadedPlan::Node& node) {
  // A node that joins many others reads slots all over the place: fetch them a few ahead.
  constexpr std::uint32_t kAhead = 8;
  const std::uint32_t* in = program->input_slots().data() + node.first_input;
  for (std::uint32_t k = 0; k < node.inputs; ++k) {
    if (k + kAhead < node.inputs) {
      const char* slot = reinterpret_cast<const char*>(&slots[in[k + kAhead]]);
      __builtin_prefetch(slot, 1);
      __builtin_prefetch(slot + sizeof(Tensor) - 1, 1);
    }
    if (--readers[in[k]] != 0) continue;
    if (kernel_place.spares)
      kernel_place.spares->put(slots[in[k]].tensor);
    else
      slots[in[k]].tensor = {};
  }
}

void StepState::State::fail(std::uint32_t node, const Status& failure) {
  // A consequence never takes the place of a cause.
  const bool better = status.ok() || (status.derived() && !failure.derived()) ||
                      (status.derived() == failure.derived() && node < failed_node && !aborted);
  if (better) {
    const Status told = over_limit(failure);
    status = node == kNoNode ? told : program->explain(node, in_iterations(node, told));
    failed_node = node;
  }
  limit = node == kNoNode ? 0 : std::min(limit, node);
}

}  // namespace troupe
