// How a step runs its nodes: the hot loop, and the dispatch of roles.
#include "actors/burst/detail/step.hpp"
#include "devices/kernel_call.hpp"

namespace troupe {

// Ordinary nodes are handled here alone. A node that is dead, behind a failure, or not an ordinary
// kernel takes the slow path (visit). Returns true if it stopped while nodes are ready: with
// `cheap`, or when a loop or call yields the lane.
bool StepState::State::loop(bool cheap) {
  const LoadedPlan::Node* const all = nodes.data();
  std::size_t left = kCheapNodes;
  for (;;) {
    if (!inbox.empty()) drain();
    if (!progress.has_ready()) return false;
    const std::uint32_t entry = progress.oldest_ready();
    if (cheap && (left-- == 0 || costly(entry))) return true;
    progress.pop_ready();
    if (!failure.lets_run(entry) || !(all[entry].flags & LoadedPlan::kOrdinary) || trace) {
      visit(entry);
      if (turn.yields()) return true;
      continue;
    }
    const LoadedPlan::Node& node = all[entry];
    if (!(node.flags & LoadedPlan::kCheap)) note_at(entry);
    KernelContext ctx = progress.context(entry);
    Status ran = call_kernel(*node.kernel, ctx);
    if (!ran.ok()) {
      failure.add(entry, ran);
      continue;
    }
    progress.finish_live(node);
  }
}

bool StepState::State::costly(std::uint32_t entry) const {
  return failure.lets_run(entry) && !(nodes[entry].flags & LoadedPlan::kCheap);
}

namespace {

// After a failure, only kernels before it still run, and loops and calls, which may contain such
// kernels: one of them may be the failure to report.
bool may_fail_first(Role role) {
  return role == Role::kernel || role == Role::loop || role == Role::loop_next ||
         role == Role::invoke || role == Role::function_return;
}

}  // namespace

void StepState::State::visit(std::uint32_t entry) {
  const bool dead = entry & LoadedPlan::kDead;
  const std::uint32_t node = entry & ~LoadedPlan::kDead;
  if (!failure.lets_run(node) || (failure.failing() && !may_fail_first(nodes[node].role))) return;
  if (!(nodes[node].flags & LoadedPlan::kCheap)) note_at(node);
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
      return switches.run_merge(node);
    case Role::control_trigger:
      return progress.finish(node, false);
    case Role::send:
      return channels.run_send(node, dead);
    case Role::recv:
      return channels.run_recv(node, dead);
    case Role::loop:
      return iterations.run_loop(node, dead);
    case Role::loop_next:
      at_node.store(node, std::memory_order_relaxed);  // in case all its nodes are cheap
      return iterations.run_next(node, dead);
    case Role::invoke:
      return calls.run_invoke(node, dead);
    case Role::function_return:
      return calls.run_return(node, dead);
    case Role::keep:
      return kept_values.run_keep(node);
    default:
      break;
  }
  if (dead) return progress.finish(node, true);
  switch (nodes[node].role) {
    case Role::kernel:
      return program->asynchronous() ? work.run_kernel(node) : run_kernel(node);
    case Role::switch_:
      return switches.run_switch(node);
    case Role::loop_cond:
      return iterations.run_condition(node);
    case Role::kept:
      return kept_values.run_kept(node);
    case Role::copy:
      return work.run_copy(node);
    case Role::placeholder:
      return run_placeholder(node);
    case Role::external:
      return requests.run_external(node);
    default:
      return progress.finish(node, false);
  }
}

void StepState::State::run_kernel(std::uint32_t node) {
  KernelContext ctx = progress.context(node);
  Status ran = call_kernel(*nodes[node].kernel, ctx);
  if (!ran.ok()) return failure.add(node, ran);
  progress.finish(node, false);
}

void StepState::State::run_placeholder(std::uint32_t node) {
  for (std::uint32_t k = 0; k < nodes[node].outputs; ++k)
    if (const std::uint32_t slot = nodes[node].first_slot + k;
        progress.readers(slot) != 0 && !progress.slot(slot).tensor.defined())
      return failure.add(node, invalid_argument("is not fed"));
  progress.finish(node, false);
}

}  // namespace troupe
