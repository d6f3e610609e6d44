#include "actors/master/sessions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/coarse_clock.hpp"
#include "core/feeds.hpp"
#include "graph/passes/placement.hpp"
#include "graph/passes/replicate.hpp"
#include "graph/passes/variable_homes.hpp"

namespace troupe {
namespace {

void finish(const std::shared_ptr<Call>& call, Status status, Sessions::Outputs& out) {
  CallResult result;
  result.status = std::move(status);
  out.push_back(Sessions::Finish{call, std::move(result)});
}

void finish_compiled(const std::shared_ptr<Call>& call, const StepEntry& step,
                     Sessions::Outputs& out) {
  CallResult result;
  result.compiled = step.id;
  result.only_reads = step.shape->only_reads();
  out.push_back(Sessions::Finish{call, std::move(result)});
}

// The client compiles the request again.
void finish_unloaded(const std::shared_ptr<Call>& call, CompiledId step, Sessions::Outputs& out) {
  CallResult result;
  result.status = not_found(fmt::format("compiled step {} is not loaded any more", step));
  result.unloaded = true;
  out.push_back(Sessions::Finish{call, std::move(result)});
}

Status closed_by_its_user() { return cancelled("the session was closed"); }

}  // namespace

// ------------------------------------------------------------------ tasks

void Sessions::task_up(TaskId task, std::string name, std::vector<TargetDevice> devices) {
  tasks_[task] = {std::move(name), std::move(devices), {}};
}

void Sessions::task_lost(TaskId task, const Status& why, Outputs& out) {
  if (tasks_.erase(task) == 0) return;
  for (auto& [id, _] : sessions_)
    for (CompiledId step : steps_.of_session(id))
      if (steps_.find(step)->loading.contains(task)) loaded({step, task, why}, out);
  // Steps being compiled may have a part there.
  for (auto& [_, session] : sessions_) {
    if (session.work == 0 || !std::holds_alternative<CompileStep>(session.asked.front())) continue;
    give_up_work(session);
    finish(std::get<CompileStep>(session.asked.front()).call, why, out);
    session.asked.pop_front();
    begin_next(session, out);
  }
}

std::string Sessions::name_of(TaskId task) const {
  auto at = tasks_.find(task);
  return at == tasks_.end() ? "" : at->second.name;
}

void Sessions::look(JobLook& look) const {
  const std::int64_t now = coarse_now_ns();
  const auto since = [&](std::int64_t then) {
    return std::chrono::duration_cast<Instant>(std::chrono::nanoseconds(now - then));
  };
  for (const auto& [id, task] : tasks_) look.tasks[id] = task.name;
  for (const auto& [id, session] : sessions_)
    if (session.work != 0)
      look.compiles.push_back({fmt::format("session {}", id), 0, {}, since(session.work_since_ns)});
  for (const StepEntry* step : steps_.loading())
    look.compiles.push_back(
        {fmt::format("session {}", step->session), step->id, step->loading, since(step->since_ns)});
}

std::vector<TargetDevice> Sessions::all_devices() const {
  std::vector<TargetDevice> devices;
  for (const auto& [_, task] : tasks_)
    devices.insert(devices.end(), task.devices.begin(), task.devices.end());
  std::sort(devices.begin(), devices.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return devices;
}

// ------------------------------------------------------------------ sessions

void Sessions::open(const OpenSession& message, Outputs& out) {
  if (!sessions_.try_emplace(message.session).second)
    return finish(message.call, already_exists("the session is open"), out);
  out.push_back(OpenRuns{message.session});
  finish(message.call, ok_status(), out);
}

Sessions::Session* Sessions::find_open(std::uint64_t session) {
  auto at = sessions_.find(session);
  return at == sessions_.end() || !at->second.closing.empty() ? nullptr : &at->second;
}

void Sessions::close(const CloseSession& message, Outputs& out) {
  auto at = sessions_.find(message.session);
  if (at == sessions_.end()) return finish(message.call, ok_status(), out);
  Session& session = at->second;
  session.closing.push_back(message.call);
  if (session.closing.size() > 1) return;  // already closing
  give_up_work(session);
  for (const auto& asked : session.asked)
    std::visit([&](const auto& m) { finish(m.call, closed_by_its_user(), out); }, asked);
  session.asked.clear();
  for (CompiledId id : steps_.of_session(message.session)) {
    StepEntry* step = steps_.find(id);
    for (const auto& call : step->waiting) finish(call, closed_by_its_user(), out);
    step->waiting.clear();
  }
  out.push_back(CloseRuns{message.session});
}

void Sessions::closed(std::uint64_t session, Outputs& out) {
  auto at = sessions_.find(session);
  if (at == sessions_.end() || at->second.closing.empty()) return;
  for (CompiledId id : steps_.of_session(session)) {
    steps_.erase(id);
    out.push_back(Unload{id});
  }
  for (const auto& call : at->second.closing) finish(call, ok_status(), out);
  sessions_.erase(at);
  Forget forget{session, {}};
  for (auto& [id, task] : tasks_)
    if (task.graphs.erase(session) > 0) forget.tasks.push_back(id);
  out.push_back(std::move(forget));
}

// ------------------------------------------------------------------ what is asked of a session

template <class Message>
void Sessions::ask_next(const Message& message, Outputs& out) {
  Session* session = find_open(message.session);
  if (!session) return finish(message.call, failed_precondition("the session is closed"), out);
  session->asked.push_back(message);
  begin_next(*session, out);
}

void Sessions::ask(const ExtendSession& message, Outputs& out) { ask_next(message, out); }
void Sessions::ask(const CompileStep& message, Outputs& out) { ask_next(message, out); }

void Sessions::begin_next(Session& session, Outputs& out) {
  while (session.work == 0 && !session.asked.empty()) {
    if (auto* extend = std::get_if<ExtendSession>(&session.asked.front())) {
      begin_work(session);
      out.push_back(Extend{session.work, session.stop, *extend});
      std::get<Extend>(out.back()).message.call = nullptr;  // answered by extended()
      return;
    }
    if (reset_) return;  // continued when the reset ends
    const auto& message = std::get<CompileStep>(session.asked.front());
    auto answered = begin_compile(session, message, out);
    if (answered.ok() && !*answered) return;
    if (!answered.ok()) finish(message.call, answered.status(), out);
    session.asked.pop_front();
  }
}

void Sessions::begin_work(Session& session) {
  session.work = next_work_++;
  session.work_since_ns = coarse_now_ns();
  session.stop = std::make_shared<std::atomic<bool>>(false);
}

// The result of the work under way is no longer needed.
void Sessions::give_up_work(Session& session) {
  if (session.work == 0) return;
  *session.stop = true;
  session.work = 0;
}

// The session of that work; null if the work was given up.
Sessions::Session* Sessions::worked_for(std::uint64_t session, std::uint64_t work) {
  auto at = sessions_.find(session);
  return at == sessions_.end() || at->second.work != work ? nullptr : &at->second;
}

void Sessions::extended(const GraphExtended& message, Outputs& out) {
  Session* session = worked_for(message.session, message.work);
  if (!session) return;
  session->work = 0;
  if (message.status.ok()) session->version = message.version;
  if (message.status.ok() && message.changed) {  // what is made of the old nodes stays what it is
    for (auto& [_, task] : tasks_)
      if (auto has = task.graphs.find(message.session); has != task.graphs.end()) has->second = 0;
    steps_.outdate(message.session);
  }
  finish(std::get<ExtendSession>(session->asked.front()).call, message.status, out);
  session->asked.pop_front();
  begin_next(*session, out);
}

// ------------------------------------------------------------------ compiling and loading

Expected<bool> Sessions::begin_compile(Session& session, const CompileStep& message, Outputs& out) {
  TROUPE_TRY(stopped_);
  if (session.version == 0) return invalid_argument("the session has no graph");
  if (StepEntry* known = steps_.find(message.session, request_key(message.request))) {
    if (known->loading.empty())
      finish_compiled(message.call, *known, out);
    else
      known->waiting.push_back(message.call);
    return true;
  }
  LoadStep& load = session.load = {};
  load.session = message.session;
  load.version = session.version;
  load.request = message.request;
  load.devices = all_devices();
  load.soft_placement = options_.soft_placement;
  load.disabled_passes = options_.disabled_passes;
  if (load.devices.empty()) return unavailable("no process has joined yet");
  SessionGraphs::Work step;
  step.session = message.session;
  step.request = message.request;
  step.target.devices = load.devices;
  step.target.soft_placement = options_.soft_placement;
  step.target.disabled = options_.disabled_passes;
  step.replicas = options_.replicas;
  for (const auto& [id, task] : tasks_)
    if (auto has = task.graphs.find(message.session); has != task.graphs.end())
      step.versions[id] = has->second;
  begin_work(session);
  out.push_back(Compile{session.work, session.stop, std::move(step)});
  return false;
}

void Sessions::compiled(const StepCompiled& message, Outputs& out) {
  Session* session = worked_for(message.session, message.work);
  if (!session) return;
  session->work = 0;
  if (!reset_) {  // else compiled again after the reset, which may drop what the step uses
    const CompileStep asked = std::get<CompileStep>(session->asked.front());
    session->asked.pop_front();
    if (Status status = add_step(*session, asked, *message.draft, out); !status.ok())
      finish(asked.call, std::move(status), out);
  }
  begin_next(*session, out);
}

Status Sessions::add_step(Session& session, const CompileStep& message, CompiledStepDraft& draft,
                          Outputs& out) {
  TROUPE_TRY(stopped_);
  TROUPE_TRY(draft.status);
  session.load.fixed = std::move(draft.fixed);
  warn(session, draft.graph.notes, out);
  StepEntry step;
  step.id = next_compiled_++;
  step.since_ns = coarse_now_ns();
  step.session = message.session;
  step.key = request_key(message.request);
  step.request = message.request;
  for (const Plan& plan : draft.graph.plans)
    for (const ResourceRef& resource : plan.resources) {
      if (!resource.name.empty()) step.containers.insert(resource.container);
      if (resource.kind == "variable")
        variables_.try_emplace(std::pair{resource.container, resource.name},
                               PlacedVariable{plan.device, variable_bytes(resource.def)});
    }
  step.shape = step_shape(draft.graph);
  step.waiting.push_back(message.call);
  session.load.compiled = step.id;
  send_loads(session, step, draft, out);
  for (CompiledId old : steps_.add(std::move(step))) out.push_back(Unload{old});
  return ok_status();
}

void Sessions::warn(Session& session, const std::vector<std::string>& notes, Outputs& out) {
  for (const std::string& note : notes)
    if (note.starts_with(kReplicasAlike))
      out.push_back(Warn{note.substr(kReplicasAlike.size())});
    else if (note.starts_with(kPlacedElsewhere) &&
             session.warned.insert(note.substr(0, note.find(','))).second)
      out.push_back(Warn{note.substr(kPlacedElsewhere.size())});
}

void Sessions::send_loads(Session& session, StepEntry& step, CompiledStepDraft& draft,
                          Outputs& out) {
  for (const auto& partition : step.shape->partitions) step.loading.insert(partition.task);
  for (TaskId id : step.loading) {
    if (auto load = draft.loads.find(id); load != draft.loads.end()) {
      tasks_.at(id).graphs[step.session] = load->second.version;
      out.push_back(SendGraph{id, std::move(load->second)});
    }
    out.push_back(SendStep{id, session.load});
  }
}

void Sessions::loaded(const StepLoaded& message, Outputs& out) {
  StepEntry* step = steps_.find(message.compiled);
  if (!step || step->loading.erase(message.task) == 0) return;
  if (!message.status.ok()) {
    for (const auto& call : step->waiting) finish(call, message.status, out);
    steps_.erase(message.compiled);
    out.push_back(Unload{message.compiled});
    return;
  }
  if (!step->loading.empty()) return;
  for (const auto& call : step->waiting) finish_compiled(call, *step, out);
  step->waiting.clear();
}

// ------------------------------------------------------------------ runs

Sessions::Run* Sessions::begin(RunStep& message, Outputs& out) {
  if (!find_open(message.run.session)) {
    finish(message.call, failed_precondition("the session is closed"), out);
    return nullptr;
  }
  StepEntry* step = steps_.find(message.compiled);
  if (!step || step->session != message.run.session) {
    finish_unloaded(message.call, message.compiled, out);
    return nullptr;
  }
  if (Status status = check_feed_count(step->request.feeds.size(), message.feeds.size());
      !status.ok()) {
    finish(message.call, std::move(status), out);
    return nullptr;
  }
  auto [at, added] = runs_.try_emplace(message.run);
  if (!added) {
    finish(message.call, already_exists(step_name(message.run) + " is under way"), out);
    return nullptr;
  }
  ++step->running;
  Run& run = at->second;
  run.call = std::move(message.call);
  run.compiled = step->id;
  run.step = step->shape;
  run.feeds = std::move(message.feeds);
  run.fetches = std::uint32_t(step->request.fetches.size());
  return &run;
}

Sessions::Run* Sessions::find(const RunId& id) {
  auto at = runs_.find(id);
  return at == runs_.end() ? nullptr : &at->second;
}

void Sessions::ended(RunAnswer& answer, Outputs& out) {
  auto at = runs_.find(answer.run);
  if (at == runs_.end()) return;
  const auto over = runs_.extract(at);
  Run& run = over.mapped();
  if (StepEntry* step = steps_.find(run.compiled)) --step->running;
  auto& last = std::get<Finish>(out.emplace_back(std::in_place_type<Finish>));
  last.call = std::move(run.call);
  CallResult& result = last.result;
  result.status = std::move(answer.status);
  result.committed = answer.committed;
  result.seen = answer.seen;
  result.snapshot = answer.snapshot;
  result.behind = answer.behind;
  result.moved = answer.moved;
  result.place = std::move(answer.place);
  if (result.status.ok()) {
    result.fetches.resize(run.fetches);
    for (Fetched& f : answer.fetches)
      if (f.index < result.fetches.size()) result.fetches[f.index] = std::move(f.value);
  }
  end_reset_if_over(out);
}

void Sessions::rewind(const RewindStep& message, Outputs& out) {
  StepEntry* step = steps_.find(message.compiled);
  if (!step || step->session != message.session)
    return finish_unloaded(message.call, message.compiled, out);
  out.push_back(Rewind{message.call, step->shape});
}

// ------------------------------------------------------------------ resets

void Sessions::reset(const ResetContainers& message, Outputs& out) {
  if (!stopped_.ok()) return finish(message.call, stopped_, out);
  const std::set<std::string> containers(message.containers.begin(), message.containers.end());
  if (!reset_) reset_.emplace();
  reset_->containers.insert(containers.begin(), containers.end());
  reset_->calls.push_back(message.call);
  const std::vector<CompiledId> dropped = steps_.that_use(containers);
  for (CompiledId id : dropped) {
    StepEntry* step = steps_.find(id);
    for (auto& call : step->waiting)
      reset_->held.push_back({step->session, step->request, std::move(call)});
    reset_->steps.insert(id);
    steps_.erase(id);
  }
  CancelRuns cancel{{}, aborted("a container that the run uses was reset")};
  for (const auto& [id, run] : runs_)
    if (std::binary_search(dropped.begin(), dropped.end(), run.compiled)) cancel.runs.push_back(id);
  if (!cancel.runs.empty()) out.push_back(std::move(cancel));
  end_reset_if_over(out);
}

void Sessions::end_reset_if_over(Outputs& out) {
  if (!reset_ || std::any_of(runs_.begin(), runs_.end(), [&](const auto& run) {
        return reset_->steps.contains(run.second.compiled);
      }))
    return;
  Reset reset = std::move(*reset_);
  reset_.reset();
  for (CompiledId id : reset.steps) out.push_back(Unload{id});
  std::erase_if(variables_,
                [&](const auto& v) { return reset.containers.contains(v.first.first); });
  out.push_back(Drop{std::move(reset.containers)});
  for (const auto& call : reset.calls) finish(call, stopped_, out);
  // These requests are older than those that wait now.
  for (auto held = reset.held.rbegin(); held != reset.held.rend(); ++held) ask_again(*held, out);
  for (auto& [_, session] : sessions_) begin_next(session, out);
}

void Sessions::ask_again(const CompileStep& held, Outputs& out) {
  Session* session = find_open(held.session);
  if (!session) return finish(held.call, closed_by_its_user(), out);
  session->asked.insert(session->asked.begin() + (session->work != 0 ? 1 : 0), held);
}

// ------------------------------------------------------------------ reports

std::vector<std::string> Sessions::text() const {
  std::vector<std::string> lines;
  for (const auto& [id, task] : tasks_) {
    std::string line = fmt::format("task {}: worker {}", number(id), task.name);
    for (const TargetDevice& d : task.devices) line += " " + d.name.text();
    lines.push_back(line);
  }
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> on;  // by device: number, bytes
  for (const auto& [_, variable] : variables_) {
    auto& [count, bytes] = on[variable.device];
    ++count, bytes += variable.bytes;
  }
  for (const auto& [device, there] : on)
    lines.push_back(
        fmt::format("variables on {}: {}, {} bytes", device, there.first, there.second));
  return lines;
}

std::vector<std::string> Sessions::homes_of(
    const std::vector<std::pair<std::string, std::string>>& variables) const {
  std::vector<std::string> homes;
  for (const auto& variable : variables) {
    const auto known = variables_.find(variable);
    homes.push_back(known == variables_.end() ? "" : known->second.device);
  }
  return homes;
}

Sessions::Tables Sessions::tables() const {
  Tables t;
  t.sessions = sessions_.size();
  for (const auto& [_, session] : sessions_) t.asked += session.asked.size();
  t.steps = steps_.size();
  t.runs = runs_.size();
  t.resets = reset_ ? 1u : 0u;
  return t;
}

}  // namespace troupe
