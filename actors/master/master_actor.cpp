#include "actors/master/master_actor.hpp"

#include <fmt/format.h>

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <variant>

#include "actors/inline_send.hpp"
#include "actors/master/session_graphs.hpp"
#include "actors/master/step_table.hpp"
#include "actors/runtime/compiler_actor.hpp"
#include "actors/spawn.hpp"
#include "actors/wake_up.hpp"
#include "core/log.hpp"
#include "graph/passes/placement.hpp"
#include "graph/passes/replicate.hpp"

namespace troupe {
namespace {

struct Process {
  std::string name;
  std::vector<TargetDevice> devices;
  ProcessActor actor;
  std::map<std::uint64_t, std::uint64_t> graphs;  // session -> version it has
};

// Extend and Compile of one session are carried out in the order in which they came, each when the
// one before is answered; the compile thread does the work of the first.
struct ClientSession {
  std::uint64_t version = 0;  // nodes of its graph
  std::deque<std::variant<ExtendSession, CompileStep>> asked;
  std::uint64_t work = 0;                      // that is under way for asked.front(); 0: none
  LoadStep load;                               // what a CompileStep under way will be loaded with
  StopFlag stop;                               // of the work
  std::vector<std::shared_ptr<Call>> closing;  // who waits for its end
  std::set<std::string> warned;                // of devices that nodes asked for and did not get
};

struct ActiveRun {
  std::shared_ptr<Call> call;
  CompiledId compiled = 0;
  std::shared_ptr<const StepShape> shape;  // also when a reset has dropped the step
  std::vector<Tensor> feeds;
  std::uint32_t fetches = 0;
  std::int64_t began_ns = 0, prepared_ns = 0;  // its start and its first PREPARE, if recorded
};

// A reset waits for the runs of the steps it drops. New steps wait for it.
struct Reset {
  std::set<std::string> containers;
  std::set<CompiledId> steps;
  std::vector<CompileStep> held;
  std::vector<std::shared_ptr<Call>> calls;
};

struct MasterState {
  static constexpr const char* name = kMaster;
  MasterOptions options;
  std::optional<Coordinator> coordinator;
  Coordinator::Outputs spare;  // empty; its memory serves every input
  std::optional<StepTable> steps;
  CompilerActor compiler;
  std::shared_ptr<SessionGraphs> graphs;  // the compile thread's
  std::uint64_t next_work = 1;
  std::map<ProcessId, Process> processes;
  std::map<std::uint64_t, ClientSession> sessions;
  std::unordered_map<RunId, ActiveRun> runs;
  std::map<std::pair<CompiledId, std::uint32_t>, PartitionActor> executors;  // reached directly
  std::optional<Reset> reset;
  CompiledId next_compiled = 1;
  WakeUp wake_up;
  Status stopped;  // the job lost state: why nothing runs any more
};

using MasterSelf = MasterActor::stateful_pointer<MasterState>;

void fail(const std::shared_ptr<Call>& call, Status status) {
  CallResult result;
  result.status = std::move(status);
  call->finish(std::move(result));
}

// Carrying out what the coordinator says.

// To the executor of a partition, which runs a step of a run that is not answered.
template <class Message>
void send_to_partition(MasterSelf self, ProcessId process, Message message) {
  auto& s = self->state;
  auto direct = s.executors.find({message.compiled, message.partition});
  if (direct != s.executors.end()) return self->send(direct->second, std::move(message));
  auto at = s.processes.find(process);
  if (at != s.processes.end()) self->send(at->second.actor, std::move(message));
}

void start(MasterSelf self, const Coordinator::StartAttempt& start) {
  auto& s = self->state;
  auto run = s.runs.find(start.attempt.run);
  if (run == s.runs.end()) return;
  StartPartition message;
  message.compiled = run->second.compiled;
  message.partition = start.partition;
  message.attempt = start.attempt;
  message.random_index = start.random_index;
  message.grant = start.grant;
  message.elements = start.elements;
  for (std::uint32_t feed : run->second.shape->partitions[start.partition].feeds)
    message.feeds.push_back(run->second.feeds[feed]);
  send_to_partition(self, start.process, std::move(message));
}

void abort(MasterSelf self, const Coordinator::AbortAttempt& abort) {
  auto run = self->state.runs.find(abort.run);
  if (run == self->state.runs.end()) return;
  send_to_partition(
      self, abort.process,
      AbortPartition{run->second.compiled, abort.partition, abort.attempt, abort.run, abort.cause});
}

void revoke(MasterSelf self, const Coordinator::RevokeGrant& revoke) {
  auto run = self->state.runs.find(revoke.run);
  if (run == self->state.runs.end()) return;
  send_to_partition(
      self, revoke.process,
      RevokeGrant{run->second.compiled, revoke.partition, revoke.attempt, revoke.run});
}

// What the client waited for, and how much of it for a commit of several shards.
void record(MasterSelf self, const RunId& id, const ActiveRun& run) {
  Trace* trace = active(self->state.options.trace);
  if (!trace || run.began_ns == 0) return;
  TraceTrack& line = trace->track("runs");
  const std::int64_t now_ns = Trace::now_ns();
  line.record({.kind = Span::Kind::run, .name = "run", .run = id.n}, run.began_ns, now_ns);
  if (run.prepared_ns != 0)
    line.record({.kind = Span::Kind::wait, .name = "wait for the commit", .run = id.n},
                run.prepared_ns, now_ns);
}

void prepare(MasterSelf self, Coordinator::SendPrepare& send) {
  auto& s = self->state;
  if (auto run = s.runs.find(send.prepare.run);
      active(s.options.trace) && run != s.runs.end() && run->second.prepared_ns == 0)
    run->second.prepared_ns = Trace::now_ns();
  if (auto p = s.processes.find(send.shard); p != s.processes.end())
    self->send(p->second.actor, std::move(send.prepare));
}

void answer(MasterSelf self, Coordinator::Answer& answer) {
  auto& s = self->state;
  auto it = s.runs.find(answer.run);
  if (it == s.runs.end()) return;
  record(self, answer.run, it->second);
  ActiveRun run = std::move(it->second);
  s.runs.erase(it);
  if (StepEntry* step = s.steps->find(run.compiled)) --step->running;
  CallResult result;
  result.status = std::move(answer.status);
  result.committed = answer.committed;
  result.place = std::move(answer.place);
  if (result.status.ok()) {
    result.fetches.resize(run.fetches);
    for (Fetched& f : answer.fetches)
      if (f.index < result.fetches.size()) result.fetches[f.index] = std::move(f.value);
  }
  run.call->finish(std::move(result));
}

void unload(MasterSelf self, CompiledId id) {
  auto& s = self->state;
  std::erase_if(s.executors, [&](const auto& e) { return e.first.first == id; });
  for (auto& [_, process] : s.processes) self->send(process.actor, UnloadStep{id});
}

void session_closed(MasterSelf self, std::uint64_t session) {
  auto& s = self->state;
  auto it = s.sessions.find(session);
  if (it == s.sessions.end() || it->second.closing.empty()) return;
  for (CompiledId id : s.steps->of_session(session)) {
    s.steps->erase(id);
    unload(self, id);
  }
  for (const auto& call : it->second.closing) call->finish({});
  s.sessions.erase(it);
  for (auto& [_, process] : s.processes)
    if (process.graphs.erase(session) > 0) self->send(process.actor, ForgetGraph{session});
  self->send(s.compiler, CompileWork{[graphs = s.graphs, session] { graphs->forget(session); }});
}

void end_reset(MasterSelf self);

void schedule_tick(MasterSelf self, Instant now) {
  auto& s = self->state;
  if (auto runs = s.wake_up.want(s.coordinator->next_wakeup(), now))
    self->delayed_send(self, *runs, Tick{});
}

void carry_out(MasterSelf self, Coordinator::Outputs& out) {
  auto& s = self->state;
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto& output = out[i];
    if (auto* x = std::get_if<Coordinator::StartAttempt>(&output)) {
      start(self, *x);
    } else if (auto* x = std::get_if<Coordinator::AbortAttempt>(&output)) {
      abort(self, *x);
    } else if (auto* x = std::get_if<Coordinator::RevokeGrant>(&output)) {
      revoke(self, *x);
    } else if (auto* x = std::get_if<Coordinator::Expel>(&output)) {
      if (auto p = s.processes.find(x->process); p != s.processes.end())
        self->send(p->second.actor, ExpelProcess{std::move(x->why)});
    } else if (auto* x = std::get_if<Coordinator::SendPrepare>(&output)) {
      prepare(self, *x);
    } else if (auto* x = std::get_if<Coordinator::SendLive>(&output)) {
      if (auto p = s.processes.find(x->process); p != s.processes.end())
        self->send(p->second.actor, std::move(x->list));
    } else if (auto* x = std::get_if<Coordinator::Answer>(&output)) {
      answer(self, *x);
    } else if (auto* x = std::get_if<Coordinator::SessionClosed>(&output)) {
      session_closed(self, x->session);
    } else if (auto* x = std::get_if<Coordinator::JobStopped>(&output)) {
      TROUPE_LOG(error, "master", x->status.text());
      s.stopped = x->status;
    }
  }
  end_reset(self);
}

// One input of the coordinator, and what follows from it. The clock is read once.
template <class Input>
void feed(MasterSelf self, Input input) {
  const Instant now = self->clock().now().time_since_epoch();
  Coordinator::Outputs out = std::exchange(self->state.spare, {});
  input(*self->state.coordinator, now, out);
  carry_out(self, out);
  out.clear();
  self->state.spare = std::move(out);
  schedule_tick(self, now);
}

// Sessions and compiling.

std::vector<TargetDevice> all_devices(const MasterState& s, std::vector<ProcessId>& owners) {
  std::vector<std::pair<TargetDevice, ProcessId>> found;
  for (const auto& [id, process] : s.processes)
    for (const TargetDevice& d : process.devices) found.push_back({d, id});
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
  std::vector<TargetDevice> devices;
  for (auto& [device, owner] : found) {
    devices.push_back(device);
    owners.push_back(owner);
  }
  return devices;
}

Target make_target(MasterSelf self, std::vector<TargetDevice> devices) {
  auto& s = self->state;
  Target target;
  target.devices = std::move(devices);
  target.soft_placement = s.options.soft_placement;
  target.disabled = s.options.disabled_passes;
  return target;
}

// What is asked of a session next. Nothing is compiled while a reset waits for runs to end.

// A piece of work, by its number and with the flag that stops it.
using Work = std::function<void(std::uint64_t, const StopFlag&)>;

void give_work(MasterSelf self, ClientSession& session, Work work) {
  auto& s = self->state;
  session.work = s.next_work++;
  session.stop = std::make_shared<std::atomic<bool>>(false);
  self->send(s.compiler,
             CompileWork{[work = std::move(work), stop = session.stop, number = session.work] {
               if (!*stop) work(number, stop);
             }});
}

void begin_extend(MasterSelf self, ClientSession& session, const ExtendSession& message) {
  auto work = [graphs = self->state.graphs, master = MasterActor(self), id = message.session,
               graph = message.graph, from = message.from,
               hash = message.hash](std::uint64_t number, const StopFlag&) {
    auto version = graphs->extend({id, graph, nullptr, from, hash});
    caf::anon_send(master, version.ok() ? GraphExtended{id, number, {}, *version}
                                        : GraphExtended{id, number, version.status(), 0});
  };
  give_work(self, session, std::move(work));
}

// True when it is answered already.
Expected<bool> begin_compile(MasterSelf self, ClientSession& session, const CompileStep& message) {
  auto& s = self->state;
  TROUPE_TRY(s.stopped);
  if (session.version == 0) return invalid_argument("the session has no graph");
  if (StepEntry* known = s.steps->find(message.session, request_key(message.request))) {
    CallResult result;
    result.compiled = known->id;
    if (known->loading.empty())
      message.call->finish(std::move(result));
    else
      known->waiting.push_back(message.call);
    return true;
  }
  LoadStep& load = session.load = {};
  load.session = message.session;
  load.version = session.version;
  load.request = message.request;
  load.devices = all_devices(s, load.processes);
  load.soft_placement = s.options.soft_placement;
  load.disabled_passes = s.options.disabled_passes;
  if (load.devices.empty()) return unavailable("no process has joined yet");
  SessionGraphs::Work step{
      message.session,   message.request, make_target(self, load.devices), load.processes, {},
      s.options.replicas};
  for (const auto& [id, process] : s.processes)
    if (auto has = process.graphs.find(message.session); has != process.graphs.end())
      step.versions[id] = has->second;
  auto work = [graphs = s.graphs, master = MasterActor(self), step = std::move(step)](
                  std::uint64_t number, const StopFlag& stop) mutable {
    const std::uint64_t id = step.session;
    step.target.stopped = [&] { return stop->load(); };
    auto draft = std::make_shared<CompiledStepDraft>(graphs->compile(std::move(step)));
    caf::anon_send(master, StepCompiled{id, number, std::move(draft)});
  };
  give_work(self, session, std::move(work));
  return false;
}

void begin_next(MasterSelf self, ClientSession& session) {
  auto& s = self->state;
  while (session.work == 0 && !session.asked.empty()) {
    if (auto* extend = std::get_if<ExtendSession>(&session.asked.front()))
      return begin_extend(self, session, *extend);
    if (s.reset) return;  // its end goes on here
    const auto& message = std::get<CompileStep>(session.asked.front());
    auto begun = begin_compile(self, session, message);
    if (begun.ok() && !*begun) return;
    if (!begun.ok()) fail(message.call, begun.status());
    session.asked.pop_front();
  }
}

template <class Message>
void ask(MasterSelf self, const Message& message) {
  auto& s = self->state;
  auto session = s.sessions.find(message.session);
  if (session == s.sessions.end() || !session->second.closing.empty())
    return fail(message.call, failed_precondition("the session is closed"));
  session->second.asked.push_back(message);
  begin_next(self, session->second);
}

// The session whose work that is; none when it was given up.
ClientSession* worked_for(MasterState& s, std::uint64_t session, std::uint64_t work) {
  auto at = s.sessions.find(session);
  return at == s.sessions.end() || at->second.work != work ? nullptr : &at->second;
}

void graph_extended(MasterSelf self, const GraphExtended& message) {
  ClientSession* session = worked_for(self->state, message.session, message.work);
  if (!session) return;
  session->work = 0;
  if (message.status.ok()) session->version = message.version;
  fail(std::get<ExtendSession>(session->asked.front()).call, message.status);
  session->asked.pop_front();
  begin_next(self, *session);
}

void send_loads(MasterSelf self, ClientSession& session, StepEntry& step,
                CompiledStepDraft& draft) {
  auto& s = self->state;
  for (const auto& partition : step.shape->partitions) step.loading.insert(partition.process);
  for (ProcessId id : step.loading) {
    Process& process = s.processes.at(id);
    if (auto load = draft.loads.find(id); load != draft.loads.end()) {
      process.graphs[step.session] = load->second.version;
      self->send(process.actor, std::move(load->second));
    }
    self->send(process.actor, session.load);
  }
}

Status add_step(MasterSelf self, ClientSession& session, const CompileStep& message,
                CompiledStepDraft& draft) {
  auto& s = self->state;
  TROUPE_TRY(s.stopped);
  TROUPE_TRY(draft.status);
  session.load.fixed = std::move(draft.fixed);
  for (const std::string& note : draft.graph.notes)
    if (note.starts_with(kReplicasAlike))
      TROUPE_LOG(warning, "master", note.substr(kReplicasAlike.size()));
    else if (note.starts_with(kPlacedElsewhere) &&
             session.warned.insert(note.substr(0, note.find(','))).second)
      TROUPE_LOG(warning, "master", note.substr(kPlacedElsewhere.size()));
  StepEntry step;
  step.id = s.next_compiled++;
  step.session = message.session;
  step.key = request_key(message.request);
  step.request = message.request;
  for (const Plan& plan : draft.graph.plans)
    for (const ResourceRef& resource : plan.resources)
      if (!resource.name.empty()) step.containers.insert(resource.container);
  step.shape = step_shape(draft.graph, draft.process_of);
  step.notes = std::move(draft.graph.notes);
  step.waiting.push_back(message.call);
  session.load.compiled = step.id;
  send_loads(self, session, step, draft);
  for (CompiledId old : s.steps->add(std::move(step))) unload(self, old);
  return ok_status();
}

void step_compiled(MasterSelf self, const StepCompiled& message) {
  auto& s = self->state;
  ClientSession* session = worked_for(s, message.session, message.work);
  if (!session) return;
  session->work = 0;
  if (!s.reset) {  // else once more when that is over: it may be about what the step uses
    const CompileStep asked = std::get<CompileStep>(session->asked.front());
    session->asked.pop_front();
    if (Status status = add_step(self, *session, asked, *message.draft); !status.ok())
      fail(asked.call, std::move(status));
  }
  begin_next(self, *session);
}

// Nobody waits any more for what is under way.
void give_up_work(ClientSession& session) {
  if (session.work == 0) return;
  *session.stop = true;
  session.work = 0;
}

void step_loaded(MasterSelf self, const StepLoaded& message) {
  auto& s = self->state;
  StepEntry* step = s.steps->find(message.compiled);
  if (!step || step->loading.erase(message.process) == 0) return;
  if (!message.status.ok()) {
    for (const auto& call : step->waiting) fail(call, message.status);
    s.steps->erase(message.compiled);
    unload(self, message.compiled);
    return;
  }
  if (!step->loading.empty()) return;
  for (const auto& call : step->waiting) {
    CallResult result;
    result.compiled = step->id;
    call->finish(std::move(result));
  }
  step->waiting.clear();
}

// Runs.

// What is wrong with a message about a run under way. Partitions of this process are not asked.
Status check_member(MasterSelf self, const PartitionDone& message) {
  auto& s = self->state;
  auto run = s.runs.find(message.run);
  if (run == s.runs.end() || s.executors.contains({run->second.compiled, message.partition}))
    return ok_status();
  return check_done(*run->second.shape, message);
}

// The run ends with what is wrong; a process that says such things is a member no longer.
void expel(MasterSelf self, const PartitionDone& message, Status lie) {
  auto& s = self->state;
  const StepShape& step = *s.runs.at(message.run).shape;
  const std::size_t partition =
      std::min<std::size_t>(message.partition, step.partitions.size() - 1);
  auto process = s.processes.find(step.partitions[partition].process);
  if (process == s.processes.end()) return;
  lie = lie.in(
      fmt::format("in what worker {} says of {}", process->second.name, step_name(message.run)));
  TROUPE_LOG(error, "master", lie.text());
  PartitionDone failed;
  failed.attempt = message.attempt;
  failed.run = message.run;
  failed.partition = std::uint32_t(partition);
  failed.status = lie;
  self->send(process->second.actor, ExpelProcess{std::move(lie)});
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    coordinator.partition_done(std::move(failed), now, out);
  });
}

void partition_done(MasterSelf self, PartitionDone& message) {
  if (Status lie = check_member(self, message); !lie.ok())
    return expel(self, message, std::move(lie));
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    coordinator.partition_done(std::move(message), now, out);
  });
}

Status begin_run(MasterSelf self, RunStep& message) {
  auto& s = self->state;
  auto session = s.sessions.find(message.run.session);
  if (session == s.sessions.end() || !session->second.closing.empty())
    return failed_precondition("the session is closed");
  StepEntry* step = s.steps->find(message.compiled);
  if (!step || step->session != message.run.session) {
    CallResult result;
    result.status =
        not_found(fmt::format("compiled step {} is not loaded any more", message.compiled));
    result.unloaded = true;
    message.call->finish(std::move(result));
    return ok_status();
  }
  if (message.feeds.size() != step->request.feeds.size())
    return invalid_argument(fmt::format("the step takes {} feeds, not {}",
                                        step->request.feeds.size(), message.feeds.size()));
  if (s.runs.contains(message.run))
    return already_exists(fmt::format("{} is under way", step_name(message.run)));
  ++step->running;
  s.runs.emplace(message.run,
                 ActiveRun{message.call, step->id, step->shape, std::move(message.feeds),
                           std::uint32_t(step->request.fetches.size()),
                           active(s.options.trace) ? Trace::now_ns() : 0});
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    const Instant deadline = message.timeout == kNever ? kNever : now + message.timeout;
    coordinator.run(
        {message.run, step->shape, deadline, std::move(message.acknowledged), message.with_place},
        now, out);
  });
  return ok_status();
}

void close_session(MasterSelf self, const CloseSession& message) {
  auto& s = self->state;
  auto session = s.sessions.find(message.session);
  if (session == s.sessions.end()) return message.call->finish({});
  session->second.closing.push_back(message.call);
  if (session->second.closing.size() > 1) return;  // it is under way
  give_up_work(session->second);
  for (const auto& asked : session->second.asked)
    std::visit([](const auto& m) { fail(m.call, cancelled("the session was closed")); }, asked);
  session->second.asked.clear();
  for (CompiledId id : s.steps->of_session(message.session)) {
    StepEntry* step = s.steps->find(id);
    for (const auto& call : step->waiting) fail(call, cancelled("the session was closed"));
    step->waiting.clear();
  }
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    coordinator.close_session(message.session, now, out);
  });
}

void rewind(MasterSelf self, const RewindStep& message) {
  auto& s = self->state;
  StepEntry* step = s.steps->find(message.compiled);
  CallResult result;
  result.unloaded = !step || step->session != message.session;
  result.status =
      result.unloaded
          ? not_found(fmt::format("compiled step {} is not loaded any more", message.compiled))
          : s.coordinator->rewind_datasets(*step->shape);
  message.call->finish(std::move(result));
}

// Reset. The steps that use the containers leave the table at once, so that none of their runs
// begins any more; runs that have begun are cancelled. When the last of them is over the workers
// unload the steps and drop the containers, and only then are steps compiled again.

void reset(MasterSelf self, const ResetContainers& message) {
  auto& s = self->state;
  if (!s.stopped.ok()) return fail(message.call, s.stopped);
  std::set<std::string> containers(message.containers.begin(), message.containers.end());
  std::vector<CompiledId> steps = s.steps->that_use(containers);
  std::vector<RunId> runs;
  for (const auto& [id, run] : s.runs)
    if (std::binary_search(steps.begin(), steps.end(), run.compiled)) runs.push_back(id);
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    for (const RunId& run : runs)
      coordinator.cancel(run, aborted("a container that the run uses was reset"), now, out);
  });
  if (!s.reset) s.reset.emplace();
  Reset& reset = *s.reset;
  reset.containers.merge(containers);
  reset.calls.push_back(message.call);
  for (CompiledId id : s.steps->that_use(reset.containers)) {
    StepEntry* step = s.steps->find(id);
    for (auto& call : step->waiting)
      reset.held.push_back({step->session, step->request, std::move(call)});
    reset.steps.insert(id);
    s.steps->erase(id);
  }
  end_reset(self);
}

void end_reset(MasterSelf self) {
  auto& s = self->state;
  if (!s.reset || std::any_of(s.runs.begin(), s.runs.end(), [&](const auto& run) {
        return s.reset->steps.contains(run.second.compiled);
      }))
    return;
  Reset reset = std::move(*s.reset);
  s.reset.reset();
  for (CompiledId id : reset.steps) unload(self, id);
  s.coordinator->rewind_datasets(reset.containers);
  DropContainers drop{{reset.containers.begin(), reset.containers.end()}};
  for (auto& [_, process] : s.processes) self->send(process.actor, drop);
  for (const auto& call : reset.calls) fail(call, s.stopped);
  // They were asked before whatever waits now.
  for (auto message = reset.held.rbegin(); message != reset.held.rend(); ++message) {
    auto session = s.sessions.find(message->session);
    if (session == s.sessions.end() || !session->second.closing.empty()) {
      fail(message->call, cancelled("the session was closed"));
      continue;
    }
    auto& asked = session->second.asked;
    asked.insert(asked.begin() + (session->second.work != 0 ? 1 : 0), *message);
  }
  for (auto& [_, session] : s.sessions) begin_next(self, session);
}

void process_lost(MasterSelf self, const ProcessLost& message) {
  auto& s = self->state;
  if (!s.processes.contains(message.process)) return;
  Status why = unavailable(fmt::format(
      "worker {} is lost: {}", s.processes.at(message.process).name, message.why.message()));
  TROUPE_LOG(warning, "master", why.text());
  s.processes.erase(message.process);
  for (auto& [session, _] : s.sessions)
    for (CompiledId id : s.steps->of_session(session)) {
      StepEntry* step = s.steps->find(id);
      if (step->loading.contains(message.process))
        step_loaded(self, StepLoaded{id, message.process, why});
    }
  // What is being compiled may have a part there.
  for (auto& [_, session] : s.sessions) {
    if (session.work == 0 || !std::holds_alternative<CompileStep>(session.asked.front())) continue;
    give_up_work(session);
    fail(std::get<CompileStep>(session.asked.front()).call, why);
    session.asked.pop_front();
    begin_next(self, session);
  }
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    coordinator.process_lost(message.process, message.why, now, out);
  });
}

std::vector<std::string> describe(const MasterState& s) {
  std::vector<std::string> lines;
  for (const auto& [id, process] : s.processes) {
    std::string line = fmt::format("process {}: {}", id, process.name);
    for (const TargetDevice& d : process.devices) line += " " + d.name.text();
    lines.push_back(line);
  }
  const auto& c = s.coordinator->counters();
  lines.push_back(fmt::format(
      "commits {} (fast {}), read-only {}, failed {}, conflicts {}, attempts {}, compiled {}, "
      "answers kept {}",
      c.commits, c.fast_commits, c.read_only, c.failed, c.conflicts, c.attempts, s.steps->size(),
      s.coordinator->tables().answers));
  if (std::string text = s.coordinator->text(); !text.empty()) lines.push_back(text);
  return lines;
}

MasterActor::behavior_type master_behavior(MasterSelf self, MasterOptions options) {
  auto& s = self->state;
  s.coordinator.emplace(options.coordinator);
  s.steps.emplace(options.compiled_steps);
  s.graphs = std::make_shared<SessionGraphs>(*options.ops);
  s.compiler = spawn_compiler(self->system(), options.own_threads);
  self->attach_functor(
      [compiler = s.compiler] { caf::anon_send_exit(compiler, caf::exit_reason::user_shutdown); });
  s.options = std::move(options);
  return {
      // looked through in this order
      [self](RunStep& message) {
        auto call = message.call;
        if (Status status = begin_run(self, message); !status.ok()) fail(call, std::move(status));
      },
      [self](PartitionDone& message) { partition_done(self, message); },
      [self](const Staged& message) {
        feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
          coordinator.staged(message, now, out);
        });
      },
      [self](const GrantReturned& message) {
        feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
          coordinator.grant_returned(message, now, out);
        });
      },
      [self](const BlockedReport& message) {
        feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
          coordinator.blocked(message, now, out);
        });
      },
      [self](const StepLoaded& message) { step_loaded(self, message); },
      [self](const OpenSession& message) {
        auto& s = self->state;
        if (!s.sessions.try_emplace(message.session).second)
          return fail(message.call, already_exists("the session is open"));
        s.coordinator->open_session(message.session);
        message.call->finish({});
      },
      [self](const ExtendSession& message) { ask(self, message); },
      [self](const CompileStep& message) { ask(self, message); },
      [self](const CancelRun& message) {
        feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
          coordinator.cancel(message.run, message.cause, now, out);
        });
      },
      [self](const CloseSession& message) { close_session(self, message); },
      [self](const ResetContainers& message) { reset(self, message); },
      [self](const RewindStep& message) { rewind(self, message); },
      [self](const DescribeJob& message) {
        CallResult result;
        result.text = describe(self->state);
        message.call->finish(std::move(result));
      },
      [self](const ResumeAt& message) {
        auto& s = self->state;
        if (s.coordinator->counters().attempts > 0)
          return fail(message.call, failed_precondition("a job resumes before its first run"));
        s.coordinator->resume_at(message.place);
        message.call->finish({});
      },
      [self](const ProcessUp& message) {
        auto& s = self->state;
        s.coordinator->add_process(message.process, message.name, true);
        s.processes[message.process] = {message.name, message.devices, message.actor, {}};
      },
      [self](const ProcessLost& message) { process_lost(self, message); },
      [self](const ExecutorsMade& message) {
        for (const auto& [partition, executor] : message.executors)
          self->state.executors[{message.compiled, partition}] = executor;
      },
      [self](const GraphExtended& message) { graph_extended(self, message); },
      [self](const StepCompiled& message) { step_compiled(self, message); },
      [self](const Tick&) {
        feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
          if (self->state.wake_up.fired(now)) coordinator.tick(now, out);
        });
      },
  };
}

}  // namespace

MasterActor spawn_master(caf::actor_system& system, MasterOptions options) {
  return spawn_actor<MasterActor>(system, kMaster, master_behavior, std::move(options));
}

}  // namespace troupe
