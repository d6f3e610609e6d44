#include "actors/burst/step_state.hpp"

#include <utility>
#include <variant>

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

std::optional<StepState::Running> StepState::look() {
  State& s = *state_;
  const std::uint32_t node = s.at_node.load(std::memory_order_relaxed);
  const std::int64_t burst = s.burst_since.load(std::memory_order_relaxed);
  // The burst may have left the node and returned between two looks, as in a loop: it is only known
  // that it was elsewhere at the look that saw another node.
  const bool as_before = node == s.looked_node && burst == s.looked_burst;
  if (!as_before) s.looked_since = burst == s.looked_burst ? s.looked_at : burst;
  s.looked_node = node;
  s.looked_burst = burst;
  s.looked_at = coarse_now_ns();
  if (node == kNoNode) return std::nullopt;
  return Running{node, s.looked_since};
}

std::vector<std::uint32_t> StepState::awaited() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < state_->nodes.size(); ++i)
    if (state_->nodes[i].role == Role::recv && state_->progress.awaits(i)) all.push_back(i);
  return all;
}

StepState::State::State(std::shared_ptr<const LoadedPlan> shared_program,
                        const CallLimits& call_limits)
    : program(std::move(shared_program)),
      nodes(program->nodes()),
      failure(*program,
              [this](std::uint32_t node, const Status& why) { return explain(node, why); }),
      progress(*program, cancelled, failure),
      memory(*program, progress, call_stack),
      tickets(*program, failure),
      work(*program, progress, tickets, memory, failure),
      switches(*program, progress, work, failure),
      channels(*program, progress, work, memory, failure),
      iterations(*program, progress, channels, work, tickets, turn, failure),
      calls(*program, call_limits, progress, iterations, tickets, turn, failure, call_stack),
      kept_values(*program, progress, work, calls, failure),
      requests(*program, progress, iterations, work, failure) {}

Status StepState::State::start(StepInput step_input, StepOutbox& step_outbox) {
  TROUPE_CHECK(over, "a step is started while the one before is not finished");
  const Plan& plan = program->plan();
  TROUPE_TRY(check_feed_count(plan.feeds.size(), step_input.feeds.size()));
  Inbox::discard(inbox.take());
  cancelled.store(false, std::memory_order_relaxed);
  input = std::move(step_input);
  memory.count(input.memory);
  failure.reset();
  progress.reset(input.run);
  tickets.reset();
  work.reset(input.trace_run, input.trace);
  channels.reset(step_outbox);
  requests.reset();
  started = over = false;
  return {};
}

BurstResult StepState::State::run(Lanes& burst_lanes, TraceTrack* burst_trace, bool cheap) {
  const FloatEnvironment kernels_own;
  BurstResult result;
  progress.place().lanes = &burst_lanes;
  trace = burst_trace;
  turn.begin();
  const std::size_t done_before = progress.nodes_done();
  const std::int64_t begin_ns = trace ? Trace::now_ns() : 0;
  burst_since.store(coarse_now_ns(), std::memory_order_relaxed);
  if (!std::exchange(started, true)) {
    place_feeds();
    requests.read_first();
  }
  result.more = loop(cheap);
  while (!result.more && failure.failing() && calls.any()) {
    calls.leave();
    result.more = loop(cheap);
  }
  if (failure.failing()) {
    requests.drop_made();
    if (!result.more) cancelled.store(true, std::memory_order_relaxed);
  }
  if (!result.more && (failure.failing() || progress.all_done()))
    over = result.finished = tickets.idle();
  at_node.store(kNoNode, std::memory_order_relaxed);
  result.requests = requests.take_made();
  result.waits = tickets.take_waits();
  if (trace && progress.nodes_done() != done_before)
    trace->record({.kind = Span::Kind::burst, .name = "burst", .run = input.trace_run}, begin_ns,
                  Trace::now_ns());
  return result;
}

void StepState::State::place_feeds() {
  const std::vector<PlanFeed>& feeds = program->plan().feeds;
  for (std::size_t i = 0; i < feeds.size() && !failure.failing(); ++i) {
    if (progress.readers(feeds[i].slot) == 0) continue;
    Status placed = work.place(kNoNode, feeds[i].slot, std::move(input.feeds[i]));
    if (!placed.ok()) failure.add(kNoNode, placed);
  }
}

StepResult StepState::State::end() {
  TROUPE_CHECK(over && started, "a step has a result once, when it is finished");
  started = false;
  StepResult out;
  if (!failure.failing()) collect_fetches(out);
  if (failure.failing()) {
    out.status = failure.status();
    out.unanswered = requests.unanswered();
  }
  out.keys = requests.take_keys();
  progress.clear(failure.failing());
  calls.shrink();
  input.feeds.clear();
  input.memory.reset();
  input.trace.reset();
  work.reset(0, nullptr);
  memory.count(nullptr);
  return out;
}

void StepState::State::collect_fetches(StepResult& out) {
  for (const PlanFetch& fetch : program->plan().fetches) {
    const Slot& slot = progress.slot(fetch.slot);
    if (slot.dead || !slot.tensor.defined()) {
      std::uint32_t node = program->producer(fetch.slot);
      failure.add(node,
                  invalid_argument(slot.dead ? "fetched, but it is on a branch that was not taken"
                                             : "fetched, but it has no value"));
      out.fetches.clear();
      return;
    }
    out.fetches.push_back({fetch.fetch, slot.tensor});
  }
}

// Adds to a failure: the largest holders if memory was refused, the node's name and line, and its
// iterations and calls, from the innermost outwards.
Status StepState::State::explain(std::uint32_t node, const Status& why) {
  Status status = memory.explain(why);
  if (node == kNoNode) return status;
  const std::vector<PlanFrame>& all = program->plan().frames;
  for (std::uint32_t f = nodes[node].frame; f != 0; f = all[f].parent) {
    if (all[f].is_function()) {
      status = status.in("in function " + all[f].name + ", call " + std::to_string(calls.depth()) +
                         " of '" + program->plan().info[all[f].loop].name + "'");
      f = all[f].leader;
      continue;
    }
    status = status.in("in iteration " + std::to_string(iterations.number(f)) + " of '" +
                       all[f].name + "'");
  }
  return program->explain(node, status);
}

void StepState::State::drain() {
  for (Inbox::Node* list = inbox.take(); list;) {
    std::visit([this](auto& arrival) { handle(arrival); }, list->arrival);
    delete std::exchange(list, list->next);
  }
}

void StepState::State::handle(WaitAnswer& answer) {
  for (std::uint32_t node : tickets.answered(answer)) visit(node);
}

}  // namespace troupe
