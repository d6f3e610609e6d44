#include "actors/burst/step_state.hpp"

#include <algorithm>
#include <cstring>

#include "actors/burst/detail/step.hpp"
#include "core/feeds.hpp"
#include "core/float_environment.hpp"
#include "core/hash.hpp"

namespace troupe {

std::uint64_t run_hash(CommitNumber snapshot, std::uint64_t k) {
  return hash_combine(mix64(snapshot + 1), k);
}

StepState::StepState(std::shared_ptr<const LoadedPlan> program, const CallLimits& limits)
    : state_(std::make_unique<State>(std::move(program), limits)) {}
StepState::~StepState() = default;

const LoadedPlan& StepState::program() const { return *state_->program; }

Status StepState::start(StepInput input, StepOutbox& outbox) {
  return state_->start(std::move(input), outbox);
}

BurstResult StepState::run(Lanes& lanes, TraceTrack* trace) {
  return state_->run(lanes, trace, false);
}

BurstResult StepState::run_cheap(Lanes& lanes, TraceTrack* trace) {
  return state_->run(lanes, trace, true);
}

StepResult StepState::result() { return state_->end(); }

void StepState::deliver(ChannelId channel, const Tag& tag, Tensor tensor, bool dead) {
  state_->inbox.push(TensorArrival{channel, tag, std::move(tensor), dead});
}

void StepState::answer(std::uint32_t request, Expected<std::vector<Tensor>> outputs) {
  RequestAnswer answer{request, outputs.status(), {}};
  if (outputs.ok()) answer.outputs = std::move(outputs).value();
  state_->inbox.push(std::move(answer));
}

void StepState::waited(std::uint32_t wait, Status status) {
  state_->inbox.push(WaitAnswer{wait, std::move(status)});
}

void StepState::abort(Status status) {
  state_->cancelled.store(true, std::memory_order_relaxed);
  state_->inbox.push(AbortStep{std::move(status)});
}

bool StepState::has_arrivals() const { return !state_->inbox.empty(); }

StepState::State::State(std::shared_ptr<const LoadedPlan> shared_program,
                        const CallLimits& call_limits)
    : program(std::move(shared_program)),
      nodes(program->nodes()),
      device(program->device()),
      limits(call_limits),
      spares(device.allocator()),
      kernel_place{.device = &device,
                   .cancelled = &cancelled,
                   .spares = program->has_loops() && !program->asynchronous() ? &spares : nullptr} {
  counts.resize(program->counts().size());
  readers.resize(program->readers().size());
  slots.resize(program->readers().size());
  ready.resize(nodes.size() * (program->has_loops() ? 2 : 1));
  draws.resize(std::max<std::size_t>(program->plan().frames.size(), 1));
  iterations.resize(draws.size());
  turns.resize(draws.size());
  if (program->has_external()) external.resize(nodes.size());
}

Status StepState::State::start(StepInput step_input, StepOutbox& step_outbox) {
  TROUPE_CHECK(over, "a step is started while the one before is not finished");
  const Plan& plan = program->plan();
  TROUPE_TRY(check_feed_count(plan.feeds.size(), step_input.feeds.size()));
  Inbox::discard(inbox.take());
  cancelled.store(false, std::memory_order_relaxed);
  input = std::move(step_input);
  draws[0] = input.run;
  outbox = &step_outbox;
  count_memory();
  // The reset: what a step counts down, as one copy each. Slots were emptied by their last readers.
  if (!counts.empty())
    std::memcpy(counts.data(), program->counts().data(), counts.size() * sizeof counts[0]);
  if (!readers.empty())
    std::memcpy(readers.data(), program->readers().data(), readers.size() * sizeof readers[0]);
  if (!external.empty()) std::memset(external.data(), 0, external.size());
  std::copy(program->roots().begin(), program->roots().end(), ready.begin());
  ready_begin = 0;
  ready_end = program->roots().size();
  nodes_done = 0;
  limit = std::uint32_t(nodes.size());
  status = {};
  failed_node = kNoNode;
  first_request += std::uint32_t(requests.size());
  first_wait += std::uint32_t(waits.size());
  requests.clear();
  waits.clear();
  issued.clear();
  forget_at = 64;
  streams.clear();
  if (program->has_loops()) std::fill(turns.begin(), turns.end(), 0);
  early.clear();
  keys.assign(plan.resources.size(), 0);
  started = over = aborted = false;
  return {};
}

BurstResult StepState::State::run(Lanes& burst_lanes, TraceTrack* burst_trace, bool cheap) {
  const FloatEnvironment kernels_own;
  BurstResult result;
  burst = &result;
  kernel_place.lanes = &burst_lanes;
  trace = burst_trace;
  yields = false;
  turn_began_ns = 0;
  const std::size_t done_before = nodes_done;
  const std::int64_t begin_ns = trace ? Trace::now_ns() : 0;
  if (!std::exchange(started, true)) {
    const Plan& plan = program->plan();
    for (std::size_t i = 0; i < plan.feeds.size() && !failing(); ++i) {
      std::uint32_t slot = plan.feeds[i].slot;
      if (readers[slot] == 0) continue;
      Status placed = place(kNoNode, slot, std::move(input.feeds[i]));
      if (!placed.ok()) fail(kNoNode, placed);
    }
    request_first_reads();
  }
  result.more = loop(cheap);
  while (!result.more && failing() && !call_stack.calls.empty()) {
    leave_calls();
    result.more = loop(cheap);
  }
  if (failing()) {
    // What was to be handed back would only be thrown away.
    for (StepRequest& r : result.requests) requests[r.id - first_request].open = false;
    result.requests.clear();
    if (!result.more) cancelled.store(true, std::memory_order_relaxed);
  }
  if (!result.more && (failing() || nodes_done == nodes.size()))
    over = result.finished = device_idle();
  if (trace && nodes_done != done_before)
    trace->record({.kind = Span::Kind::burst, .name = "burst", .run = input.trace_run}, begin_ns,
                  Trace::now_ns());
  burst = nullptr;
  return result;
}

StepResult StepState::State::end() {
  TROUPE_CHECK(over && started, "a step has a result once, when it is finished");
  started = false;
  StepResult out;
  if (!failing()) collect_fetches(out);
  if (failing()) {
    out.status = status;
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (requests[i].open) out.unanswered.push_back(first_request + std::uint32_t(i));
  }
  out.keys = std::move(keys);
  clear_slots();
  spares.clear();
  if (call_stack.words.capacity() > CallStack::kKeptWords) call_stack = {};
  input.feeds.clear();
  input.memory.reset();
  count_memory();
  return out;
}

void StepState::State::collect_fetches(StepResult& out) {
  for (const PlanFetch& fetch : program->plan().fetches) {
    const Slot& slot = slots[fetch.slot];
    if (slot.dead || !slot.tensor.defined()) {
      std::uint32_t node = program->producer(fetch.slot);
      fail(node, invalid_argument(slot.dead ? "fetched, but it is on a branch that was not taken"
                                            : "fetched, but it has no value"));
      out.fetches.clear();
      return;
    }
    out.fetches.push_back({fetch.fetch, slot.tensor});
  }
}

// After a good step only what was fetched is left.
void StepState::State::clear_slots() {
  if (failing()) {
    for (Slot& slot : slots) slot = {};
  } else {
    for (const PlanFetch& fetch : program->plan().fetches) slots[fetch.slot] = {};
  }
  for (std::uint32_t slot : dead_slots) slots[slot].dead = false;
  dead_slots.clear();
}

}  // namespace troupe
