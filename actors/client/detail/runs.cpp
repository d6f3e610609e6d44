#include "actors/client/detail/runs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/inline_send.hpp"
#include "core/content_bytes.hpp"

namespace troupe::detail {
namespace {

constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365 * 100);  // of a timeout

RunLog::Outcome run_again(const std::shared_ptr<Step>& step, const std::vector<Tensor>& feeds,
                          const RunOptions& options);

}  // namespace

bool is_logged(const SessionCore& core) {
  return core.logs && core.passes.load() != std::this_thread::get_id();
}

Status move_at_gate(SessionCore& core, const std::function<CallResult()>& f, std::size_t bytes) {
  return at_gate(core, [&] {
    const CallResult result = f();
    if (result.status.ok() && is_logged(core))
      core.log.enter_done(
          [f] {
            return RunLog::Outcome{f().status.code(), 0, 0};
          },
          bytes, result.seen);
    return result.status;
  });
}

namespace {

// Enters the run into the session's log, so that a recovery repeats it, unless it has no effect.
void enter(const Step& step, const std::vector<Tensor>& feeds, const RunOptions& options,
           Run& run) {
  SessionCore& core = *step.core;
  run.generation = core.generation;
  if (step.only_reads || (step.reads && !options.note) || !is_logged(core)) return;
  if (!core.keeps) {  // there is no state to repeat it from
    run.logged = core.log.enter(run.call, 0, nullptr, step.takes);
    return;
  }
  std::size_t bytes = options.note ? options.note->size() : 0;
  for (const Tensor& feed : feeds) bytes += content_bytes(feed);
  RunOptions again = options;
  again.timeout.reset();
  again.dropped.reset();  // already counted
  again.staleness.reset();
  again.durable = false;  // the client already waits
  auto same = std::const_pointer_cast<Step>(step.shared_from_this());
  run.logged = core.log.enter(
      run.call, bytes, [same, feeds, again] { return run_again(same, feeds, again); }, step.takes,
      step.files);
}

using Clock = DurableRuns::Clock;

// When a run that begins now has to be over.
Clock::time_point deadline_of(const RunOptions& options) {
  if (!options.timeout || *options.timeout >= kLongest) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(*options.timeout);
}
std::chrono::nanoseconds left_until(Clock::time_point until) {
  if (until == Clock::time_point::max()) return kNever;
  return std::max(std::chrono::nanoseconds(0),
                  std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()));
}

// Delays the answer until a checkpoint contains the run: the client waits for another Call than the
// one that the master finishes.
void hold_back(Run& run, DurableRuns::Clock::time_point until) {
  const std::shared_ptr<Call> inner = std::exchange(run.call, std::make_shared<Call>());
  run.noted = true;
  run.until = until;
  inner->then([core = run.core, id = run.id, logged = run.logged, until,
               outer = run.call](const CallResult& result) {
    Run::note(*core, id, logged, result);
    if (!result.status.ok()) return outer->finish(result);
    const CommitNumber has = result.committed != 0 ? result.committed : result.seen;
    core->durable.wait(
        has, until,
        [outer, result](Status status) {
          CallResult answer = result;
          answer.status = std::move(status);
          outer->finish(std::move(answer));
        },
        !result.moved);
  });
}

}  // namespace

RunOptions rest_of(const RunOptions& options, Clock::time_point began) {
  RunOptions rest = options;
  if (!options.timeout || options.timeout->count() <= 0 || *options.timeout >= kLongest)
    return rest;
  const auto left = *options.timeout - (Clock::now() - began);
  rest.timeout = std::max(std::chrono::nanoseconds(0),
                          std::chrono::duration_cast<std::chrono::nanoseconds>(left));
  return rest;
}

void start(const Step& step, std::vector<Tensor> feeds, const RunOptions& options, Run& run,
           LentThread* waiter) {
  const Clock::time_point until = deadline_of(options);
  const auto too_late = [] {
    return deadline_exceeded("the run's timeout had passed before it began");
  };
  run.core = step.core;
  Status status = AsksWhetherToStop::not_here(*run.core, "CompiledStep::start");
  if (status.ok()) status = check_feeds(step.feeds, feeds);
  if (status.ok() && options.durable) status = run.core->durable.available();
  if (status.ok() && options.durable && run.core->once_by.load() == std::this_thread::get_id())
    status = failed_precondition(
        "a durable run in Session::once would wait for a checkpoint, which waits for once()");
  if (status.ok() && options.timeout && options.timeout->count() <= 0) status = too_late();
  if (status.ok() && options.note) status = check_note(*options.note);
  if (!status.ok()) {
    run.call = std::make_shared<Call>();
    return refuse(*run.call, std::move(status));
  }
  SessionCore& core = *step.core;
  std::shared_lock<std::shared_mutex> open;
  if (is_logged(core)) open = std::shared_lock(core.gate);
  const std::chrono::nanoseconds left = left_until(until);
  if (left.count() == 0) {  // while the session kept its state, or replaced what was lost
    run.call = std::make_shared<Call>();
    return refuse(*run.call, too_late());
  }
  if (step.generation != core.generation || !core.failed.ok()) {  // of a lost runtime
    run.call = std::make_shared<Call>();
    CallResult result;
    result.unloaded = core.failed.ok();
    result.status =
        core.failed.ok() ? unavailable("the step is of a runtime that was lost") : core.failed;
    return run.call->finish(std::move(result));
  }
  RunStep message;
  {
    std::lock_guard lock(core.numbers_mutex);
    run.id = {core.id, core.numbers.next()};
    message.acknowledged = core.numbers.acknowledged();
  }
  if (!core.any_run.load(std::memory_order_relaxed)) core.any_run = true;
  if (waiter) waiter->wait_for(burst_name(run.id));
  message.run = run.id;
  message.compiled = step.id.load();
  message.timeout = left;
  message.with_place = step.with_place;
  message.on_nan = options.on_nan;
  message.commit = options.commit;
  message.resume = step.resume;
  if (options.note) message.note = std::make_shared<const std::string>(*options.note);
  run.call = attach_call(core, message);
  if (run.call->done()) return;
  enter(step, feeds, options, run);
  if (options.durable) hold_back(run, until);
  message.feeds = std::move(feeds);
  to_master(core, std::move(message),
            [](const MasterActor& master, RunStep& m) { send_inline(master, std::move(m)); });
}

void count(const RunOptions& options, const CallResult& result) {
  if (options.staleness && options.commit == Commit::immediate && result.committed != 0)
    options.staleness->note(result.behind);
  if (options.on_nan != OnNan::drop || !options.dropped || result.committed != 0) return;
  if (std::any_of(result.fetches.begin(), result.fetches.end(),
                  [](const Tensor& value) { return value.has_nan(); }))
    ++*options.dropped;
}

// Compiles the step in the current runtime.
Status compile_anew(Step& step, CompiledId used) {
  const std::uint64_t generation = step.core->generation;
  TROUPE_TRY(const Compiled again, compile_again(*step.core, step.request));
  if (step.generation != generation) {
    step.is(again, generation);
  } else {
    step.reads = again.only_reads;
    step.id.compare_exchange_strong(used, again.id);
  }
  return ok_status();
}

namespace {

// `committed`: of the run, also if it fails: a durable one may be in no checkpoint. Not if a part
// was lost: then the commit may be lost, too, and is made again from the log.
Status run_in_this_runtime(Step& step, const std::vector<Tensor>& feeds, const RunOptions& options,
                           CallResult& answer, CommitNumber& committed) {
  const Clock::time_point began = options.timeout ? Clock::now() : Clock::time_point();
  std::optional<RunOptions> rest;  // of a second try: also compiling takes time
  for (int tries = 0;; ++tries) {
    CompiledId used = step.id.load();
    Run run;
    // A run with a timeout must be able to return while a kernel still computes.
    std::optional<LentThread> here;
    if (!options.timeout) here.emplace();
    start(step, feeds, rest ? *rest : options, run, here ? &*here : nullptr);
    const bool waited = here && here->work([&] { return run.call->done(); });
    CallResult& result = run.wait(!waited);
    committed = result.status.code() == Code::unavailable ? 0 : result.committed;
    if (result.status.ok()) {
      count(options, result);
      answer = std::move(result);
      return ok_status();
    }
    // If many steps are compiled, the least recently used are unloaded: compile it again.
    if (tries > 0 || !result.unloaded) return result.status;
    TROUPE_TRY(compile_anew(step, used));
    rest = rest_of(options, began);
  }
}

RunLog::Outcome run_again(const std::shared_ptr<Step>& step, const std::vector<Tensor>& feeds,
                          const RunOptions& options) {
  CommitNumber committed = 0;
  CallResult answer;
  const Status status = run_in_this_runtime(*step, feeds, options, answer, committed);
  if (status.ok()) return RunLog::outcome_of(answer);
  return {status.code(), committed, 0};
}

}  // namespace

Status compile_first(Step& step, Expected<Compiled> compile(SessionCore&, const CompileRequest&)) {
  return in_some_runtime(step.core, [&]() -> Status {
    const std::uint64_t generation = step.core->generation;
    TROUPE_TRY(const Compiled compiled, compile(*step.core, step.request));
    step.is(compiled, generation);
    return ok_status();
  });
}

Status run_to_end(Step& step, const std::vector<Tensor>& feeds, const RunOptions& options,
                  CallResult& answer) {
  CommitNumber committed = 0;
  if (!options.timeout)
    return in_some_runtime(
        step.core, [&] { return run_in_this_runtime(step, feeds, options, answer, committed); },
        committed);
  const Clock::time_point began = Clock::now();
  const auto run = [&] {  // the time of a recovery counts
    return run_in_this_runtime(step, feeds, rest_of(options, began), answer, committed);
  };
  return in_some_runtime(step.core, run, committed);
}

}  // namespace troupe::detail
