#include "actors/client/compiled_step.hpp"

#include <fmt/format.h>

#include "actors/client/detail/runs.hpp"
#include "ops/data/pipeline.hpp"

namespace troupe {

using detail::SessionCore;

namespace {

Status no_step() {
  return failed_precondition("the CompiledStep is empty: Session::compile makes one");
}
Status no_run() {
  return failed_precondition("the PendingRun is empty: CompiledStep::start makes one");
}

}  // namespace

bool PendingRun::done() const {
  if (!state_) throw Error(no_run());
  return state_->call->done();
}

CommitNumber PendingRun::committed() const {
  if (!done()) throw Error(failed_precondition("the run is still under way"));
  return state_->call->result().committed;
}

bool PendingRun::unloaded() const { return done() && state_->call->result().unloaded; }

void PendingRun::cancel() {
  if (!state_) throw Error(no_run());
  to_master(*state_->core, CancelRun{state_->id, cancelled("the client cancelled the run")});
}

Expected<std::vector<Tensor>> PendingRun::State::fetched() {
  const CallResult& result = wait();
  if (!result.status.ok()) return result.status;
  if (!counted.exchange(true)) detail::count(options, result);
  return result.fetches;
}

Expected<std::vector<Tensor>> PendingRun::try_get() {
  if (!state_) return no_run();
  SessionCore& core = *state_->core;
  if (!done()) {
    TROUPE_TRY(may_wait(core, "PendingRun::get"));
    if (state_->options.durable) TROUPE_TRY(core.durable.may_wait("PendingRun::get"));
  }
  auto fetched = state_->fetched();
  if (fetched.status().code() == Code::unavailable && core.keeps && committed() == 0 &&
      core.passes.load() != std::this_thread::get_id() && may_wait(core, "PendingRun::get").ok())
    (void)recover(state_->core, state_->generation, fetched.status());  // for later runs
  return fetched;
}

void PendingRun::then(std::function<void(Expected<std::vector<Tensor>>)> f) {
  if (!state_) throw Error(no_run());
  if (!f) throw Error(invalid_argument("PendingRun::then with nothing to call"));
  state_->call->then([state = state_, f = std::move(f)](const CallResult&) mutable {
    state->core->callbacks->call([state, f = std::exchange(f, nullptr)] { f(state->fetched()); });
  });
}

Status CompiledStep::try_rewind() const {
  if (!state_) return no_step();
  TROUPE_TRY(may_wait(*state_->core, "CompiledStep::rewind"));
  const auto rewind = [state = state_]() -> CallResult {
    detail::Step& step = *state;
    for (int tries = 0;; ++tries) {
      CompiledId used = step.id.load();
      CallResult result;
      result.unloaded = step.generation != step.core->generation;
      if (!result.unloaded)
        result = ask_numbered(*step.core, RewindStep{step.core->id, used, nullptr});
      if (tries > 0 || !result.unloaded) return result;
      result.status = compile_anew(step, used);
      if (!result.status.ok()) return result;
    }
  };
  return detail::in_some_runtime(state_->core, [&] { return move_at_gate(*state_->core, rewind); });
}

Expected<std::optional<std::vector<Tensor>>> CompiledStep::try_next(
    const RunOptions& options) const {
  Expected<std::vector<Tensor>> fetched = try_run({}, options);
  if (!fetched.ok() && is_dataset_end(fetched.status()))
    return std::optional<std::vector<Tensor>>();
  TROUPE_TRY(fetched.status());
  return std::optional(std::move(fetched).value());
}

Expected<CompiledStep> CompiledStep::try_single() const {
  if (!state_) return no_step();
  if (state_->request.replicas == 1) return *this;
  TROUPE_TRY(may_wait(*state_->core, "CompiledStep::single"));
  CompileRequest request = state_->request;
  request.replicas = 1;
  CompiledStep one;
  one.state_ = std::make_shared<State>();
  one.state_->core = state_->core;
  one.state_->request = std::move(request);
  one.state_->feeds = state_->feeds;
  one.state_->takes = state_->takes;
  // Does not need nodes that the client has added since.
  TROUPE_TRY(compile_first(*one.state_, detail::compile_again));
  return one;
}

Status CompiledStep::try_load() const {
  if (!state_) return no_step();
  TROUPE_TRY(may_wait(*state_->core, "CompiledStep::load"));
  return detail::in_some_runtime(state_->core, [&] { return compile_anew(*state_, state_->id); });
}

PendingRun CompiledStep::start(std::vector<Tensor> feeds, const RunOptions& options) const {
  if (!state_) throw Error(no_step());
  throw_if_error(in_its_process(*state_->core, "CompiledStep::start"));
  std::optional<RunOptions> rest;
  if (state_->generation != state_->core->generation &&
      may_wait(*state_->core, "CompiledStep::start").ok()) {
    const auto began = std::chrono::steady_clock::now();
    throw_if_error(compile_anew(*state_, state_->id));
    rest = detail::rest_of(options, began);
  }
  PendingRun pending;
  pending.state_ = std::make_shared<PendingRun::State>();
  pending.state_->options.on_nan = options.on_nan;
  pending.state_->options.dropped = options.dropped;
  pending.state_->options.commit = options.commit;
  pending.state_->options.staleness = options.staleness;
  pending.state_->options.durable = options.durable;
  detail::start(*state_, std::move(feeds), rest ? *rest : options, *pending.state_);
  return pending;
}

Expected<std::vector<Tensor>> CompiledStep::try_run(std::vector<Tensor> feeds,
                                                    const RunOptions& options) const {
  if (!state_) return no_step();
  TROUPE_TRY(may_wait(*state_->core, "CompiledStep::run"));
  if (options.durable) TROUPE_TRY(state_->core->durable.may_wait("CompiledStep::run"));
  CallResult answer;
  TROUPE_TRY(run_to_end(*state_, feeds, options, answer));
  return std::move(answer.fetches);
}

Status CompiledStep::check_scalars(const std::vector<Tensor>& fetched,
                                   std::initializer_list<DType> wanted) {
  if (fetched.size() != wanted.size())
    return invalid_argument(
        fmt::format("the step fetches {} values, not {}", fetched.size(), wanted.size()));
  auto value = fetched.begin();
  for (DType dtype : wanted) {
    const bool whole = dtype == DType::invalid;
    if (!whole && (value->dtype() != dtype || value->elements() != 1))
      return invalid_argument(fmt::format("fetch {} is {}{}, not one {}; a Tensor takes any",
                                          value - fetched.begin(), dtype_name(value->dtype()),
                                          value->shape().text(), dtype_name(dtype)));
    ++value;
  }
  return ok_status();
}

}  // namespace troupe
