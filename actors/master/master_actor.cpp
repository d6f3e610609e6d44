#include "actors/master/master_actor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <functional>
#include <map>
#include <optional>

#include "actors/inline_send.hpp"
#include "actors/master/wait_lines.hpp"
#include "actors/runtime/compiler_actor.hpp"
#include "actors/spawn.hpp"
#include "actors/wake_up.hpp"
#include "core/log.hpp"

namespace troupe {
namespace {

struct MasterState {
  static constexpr const char* name = "master";
  static constexpr InlineWork kInline = InlineWork::short_work;
  std::shared_ptr<Trace> trace;
  std::optional<Coordinator> coordinator;
  std::optional<Sessions> sessions;
  Coordinator::Outputs spare;        // empty; its memory is reused
  Sessions::Outputs spare_sessions;  // likewise
  CompilerActor compiler;
  std::shared_ptr<SessionGraphs> graphs;  // used by the compile thread only
  std::map<TaskId, ProcessActor> tasks;
  std::map<std::pair<CompiledId, std::uint32_t>, PartitionActor> executors;  // in this process
  WakeUp wake_up;

  // Actions of clients that are not answered.
  struct Action {
    std::vector<std::shared_ptr<Call>> calls;
    bool unloaded = false;
  };
  std::map<RunId, Action> actions;

  // One query of all tasks for what runs wait for; requests made while it is under way share it.
  std::uint64_t waits_round = 0;
  std::map<TaskId, TaskWaits> waits_told;
  std::vector<std::function<void(const JobLook&)>> waits_wanted;  // empty: none is under way
  std::vector<RunId> near_deadlines;  // runs of which it is asked; else empty
  WaitsWatch watch{Instant{}};
  bool watching = false;  // a WatchRuns is scheduled
};

// Tasks that have not answered by then are reported as such. Delays a deadline by at most as much.
constexpr Instant kTellWithin = std::chrono::milliseconds(250);
constexpr Instant kExplainWithin = std::chrono::milliseconds(500);
constexpr Instant kWatchEvery = std::chrono::seconds(2);
constexpr std::size_t kMostLines = 5;  // in an error

using MasterSelf = MasterActor::stateful_pointer<MasterState>;

// Passes one input to a state machine and carries out its outputs. The clock is read once.
template <class Input>
void feed(MasterSelf self, Input input);
template <class Input>
void feed_sessions(MasterSelf self, Input input);

// ------------------------------------------------------------------ what the coordinator says

template <class Message>
void send_to_task(MasterSelf self, TaskId task, Message message) {
  auto& s = self->state;
  if (auto at = s.tasks.find(task); at != s.tasks.end()) self->send(at->second, std::move(message));
}

template <class Message>
void send_to_tasks(MasterSelf self, const Message& message) {
  for (auto& [_, host] : self->state.tasks) self->send(host, message);
}

// To the executor of a partition. REQUIRES: the run is not answered.
template <class Message>
void send_to_partition(MasterSelf self, TaskId task, Message message) {
  auto& s = self->state;
  auto direct = s.executors.find({message.compiled, message.partition});
  if (direct != s.executors.end()) return self->send(direct->second, std::move(message));
  send_to_task(self, task, std::move(message));
}

void carry_out(MasterSelf self, Coordinator::StartAttempt& start) {
  Sessions::Run* run = self->state.sessions->find(start.attempt.run);
  if (!run) return;
  StartPartition message;
  message.compiled = run->compiled;
  message.partition = start.partition;
  message.attempt = start.attempt;
  message.random_index = start.random_index;
  message.grant = start.grant;
  message.elements = std::move(start.elements);
  for (std::uint32_t feed : run->step->partitions[start.partition].feeds)
    message.feeds.push_back(run->feeds[feed]);
  send_to_partition(self, start.task, std::move(message));
}

void carry_out(MasterSelf self, Coordinator::AbortAttempt& abort) {
  Sessions::Run* run = self->state.sessions->find(abort.run);
  if (!run) return;
  send_to_partition(
      self, abort.task,
      AbortPartition{run->compiled, abort.partition, abort.attempt, abort.run, abort.cause});
}

void carry_out(MasterSelf self, Coordinator::RevokeGrant& revoke) {
  Sessions::Run* run = self->state.sessions->find(revoke.run);
  if (!run) return;
  send_to_partition(self, revoke.task,
                    RevokeGrant{run->compiled, revoke.partition, revoke.attempt, revoke.run});
}

void carry_out(MasterSelf self, Coordinator::SendPrepare& send) {
  auto& s = self->state;
  Sessions::Run* run = s.sessions->find(send.prepare.run);
  if (active(s.trace) && run && run->prepared_ns == 0) run->prepared_ns = Trace::now_ns();
  send_to_task(self, send.shard, std::move(send.prepare));
}

void carry_out(MasterSelf self, Coordinator::SendLive& send) {
  send_to_task(self, send.task, std::move(send.list));
}

void carry_out(MasterSelf self, Coordinator::Expel& expel) {
  send_to_task(self, expel.task, ExpelProcess{std::move(expel.why)});
}

// Records how long the client waited, and how long of it for the commit. Reads are named so: a job
// reads its state now and then, between the steps.
void record(MasterSelf self, const RunId& id) {
  Trace* trace = active(self->state.trace);
  if (!trace) return;
  const Sessions::Run* run = self->state.sessions->find(id);
  if (!run || run->began_ns == 0) return;
  TraceTrack& line = trace->track("runs");
  const std::int64_t now_ns = Trace::now_ns();
  const char* name = run->step && !run->step->may_write ? "read" : "run";
  line.record({.kind = Span::Kind::run, .name = name, .run = id.n}, run->began_ns, now_ns);
  if (run->prepared_ns != 0)
    line.record({.kind = Span::Kind::wait, .name = "wait for the commit", .run = id.n},
                run->prepared_ns, now_ns);
}

void carry_out(MasterSelf self, Coordinator::Answer& answer) {
  if (auto action = self->state.actions.extract(answer.run)) {
    CallResult result;
    result.status = std::move(answer.status);
    result.seen = answer.seen;
    result.unloaded = action.mapped().unloaded;
    for (const auto& call : action.mapped().calls) call->finish(result);
    return;
  }
  record(self, answer.run);
  feed_sessions(self, [&](Sessions& sessions, auto& out) { sessions.ended(answer, out); });
}

void carry_out(MasterSelf self, Coordinator::SessionClosed& closed) {
  feed_sessions(self, [&](Sessions& sessions, auto& out) { sessions.closed(closed.session, out); });
}

void want_waits(MasterSelf self, std::function<void(const JobLook&)> then);

void carry_out(MasterSelf self, Coordinator::ExplainDeadline& near) {
  auto& near_runs = self->state.near_deadlines;
  near_runs.push_back(near.run);
  if (near_runs.size() > 1) return;  // many may have the same deadline
  want_waits(self, [self](const JobLook& look) {
    const auto waits = lines_of(look, std::exchange(self->state.near_deadlines, {}), kMostLines);
    feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
      coordinator.explained(waits, now, out);
    });
  });
}

void carry_out(MasterSelf self, Coordinator::JobStopped& stopped) {
  TROUPE_LOG(error, "master", stopped.status.text());
  self->state.sessions->stop(std::move(stopped.status));
}

// ------------------------------------------------------------------ what the sessions say

void carry_out(MasterSelf, Sessions::Finish& finish) {
  finish.call->finish(std::move(finish.result));
}

template <class Work>
void give_work(MasterSelf self, StopFlag stop, Work work) {
  self->send(self->state.compiler,
             CompileWork{[stop = std::move(stop), work = std::move(work)]() mutable {
               if (!*stop) work();
             }});
}

void carry_out(MasterSelf self, Sessions::Extend& extend) {
  auto work = [graphs = self->state.graphs, master = MasterActor(self), number = extend.work,
               message = extend.message] {
    auto extended = graphs->extend(message);
    GraphExtended done{message.session, number, extended.status()};
    if (extended.ok()) done.version = extended->version, done.changed = extended->changed;
    caf::anon_send(master, std::move(done));
  };
  give_work(self, std::move(extend.stop), std::move(work));
}

void carry_out(MasterSelf self, Sessions::Compile& compile) {
  auto work = [graphs = self->state.graphs, master = MasterActor(self), number = compile.work,
               stop = compile.stop, step = std::move(compile.step)]() mutable {
    const std::uint64_t id = step.session;
    step.target.stopped = [&] { return stop->load(); };
    auto draft = std::make_shared<CompiledStepDraft>(graphs->compile(std::move(step)));
    caf::anon_send(master, StepCompiled{id, number, std::move(draft)});
  };
  give_work(self, std::move(compile.stop), std::move(work));
}

void carry_out(MasterSelf self, Sessions::SendGraph& send) {
  send_to_task(self, send.task, std::move(send.graph));
}

void carry_out(MasterSelf self, Sessions::SendStep& send) {
  send_to_task(self, send.task, std::move(send.step));
}

void carry_out(MasterSelf self, Sessions::Unload& unload) {
  std::erase_if(self->state.executors, [&](const auto& e) { return e.first.first == unload.step; });
  send_to_tasks(self, UnloadStep{unload.step});
}

void carry_out(MasterSelf self, Sessions::Forget& forget) {
  auto& s = self->state;
  for (TaskId task : forget.tasks) send_to_task(self, task, ForgetGraph{forget.session});
  self->send(s.compiler, CompileWork{[graphs = s.graphs, session = forget.session] {
               graphs->forget(session);
             }});
}

void carry_out(MasterSelf self, Sessions::Drop& drop) {
  self->state.coordinator->rewind_datasets(drop.containers);
  send_to_tasks(self, DropContainers{{drop.containers.begin(), drop.containers.end()}});
}

void carry_out(MasterSelf self, Sessions::OpenRuns& open) {
  self->state.coordinator->open_session(open.session);
}

void carry_out(MasterSelf self, Sessions::CloseRuns& close) {
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    coordinator.close_session(close.session, now, out);
  });
}

void carry_out(MasterSelf self, Sessions::CancelRuns& cancel) {
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    for (const RunId& run : cancel.runs) coordinator.cancel(run, cancel.cause, now, out);
  });
}

void carry_out(MasterSelf self, Sessions::Rewind& rewind) {
  CallResult result;
  result.status = self->state.coordinator->rewind_datasets(*rewind.step);
  rewind.call->finish(std::move(result));
}

void carry_out(MasterSelf, Sessions::Warn& warn) { TROUPE_LOG(warning, "master", warn.text); }

// ------------------------------------------------------------------ inputs

template <class Input>
void feed(MasterSelf self, Input input) {
  auto& s = self->state;
  const Instant now = self->clock().now().time_since_epoch();
  Coordinator::Outputs out = std::exchange(s.spare, {});
  input(*s.coordinator, now, out);
  // Answers come last: Sessions may unload a step after its last run, and executors must have been
  // told before that the attempts are over.
  const auto ends = [](const Coordinator::Output& o) {
    return std::holds_alternative<Coordinator::Answer>(o) ||
           std::holds_alternative<Coordinator::SessionClosed>(o);
  };
  for (bool last : {false, true})
    for (auto& output : out)
      if (ends(output) == last) std::visit([self](auto& o) { carry_out(self, o); }, output);
  out.clear();
  s.spare = std::move(out);
  if (auto runs = s.wake_up.want(s.coordinator->next_wakeup(), now))
    self->delayed_send(self, *runs, Tick{});
}

template <class Input>
void feed_sessions(MasterSelf self, Input input) {
  auto& s = self->state;
  Sessions::Outputs out = std::exchange(s.spare_sessions, {});
  input(*s.sessions, out);
  for (auto& output : out) std::visit([self](auto& o) { carry_out(self, o); }, output);
  out.clear();
  s.spare_sessions = std::move(out);
}

// Handlers for messages that are inputs of Sessions or of the coordinator.
template <class Message>
auto to_sessions(MasterSelf self, void (Sessions::*input)(const Message&, Sessions::Outputs&)) {
  return [self, input](const Message& message) {
    feed_sessions(self, [&](Sessions& sessions, auto& out) { (sessions.*input)(message, out); });
  };
}
template <class Message>
auto to_coordinator(MasterSelf self,
                    void (Coordinator::*input)(const Message&, Instant, Coordinator::Outputs&)) {
  return [self, input](const Message& message) {
    feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
      (coordinator.*input)(message, now, out);
    });
  };
}

void watch_soon(MasterSelf self);

void run_step(MasterSelf self, RunStep& message) {
  auto& s = self->state;
  Sessions::Run* run = nullptr;
  feed_sessions(self, [&](Sessions& sessions, auto& out) { run = sessions.begin(message, out); });
  if (!run) return;
  watch_soon(self);
  if (active(s.trace)) run->began_ns = Trace::now_ns();
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    const Instant deadline = message.timeout == kNever ? kNever : now + message.timeout;
    coordinator.run(
        {message.run, run->step, deadline, std::move(message.acknowledged), message.with_place,
         std::move(message.note), message.on_nan, std::move(message.resume), message.commit},
        now, out);
  });
}

// ------------------------------------------------------------------ what runs wait for

void tell_waits(MasterSelf self) {
  auto& s = self->state;
  JobLook look;
  look.runs = s.coordinator->looks(self->clock().now().time_since_epoch());
  s.sessions->look(look);
  look.told = std::exchange(s.waits_told, {});
  look.asked_for = kTellWithin;
  for (const auto& then : std::exchange(s.waits_wanted, {})) then(look);
}

void want_waits(MasterSelf self, std::function<void(const JobLook&)> then) {
  auto& s = self->state;
  s.waits_wanted.push_back(std::move(then));
  if (s.waits_wanted.size() > 1) return;
  ++s.waits_round;
  s.waits_told.clear();
  send_to_tasks(self, AskWaits{s.waits_round});
  self->delayed_send(self, kTellWithin, WaitsDue{s.waits_round});
}

void task_told(MasterSelf self, const TaskWaits& message) {
  auto& s = self->state;
  if (message.round != s.waits_round || s.waits_wanted.empty()) return;
  s.waits_told[message.task] = message;
  for (const auto& [task, _] : s.tasks)
    if (!s.waits_told.contains(task)) return;
  tell_waits(self);
}

void ask_waits(MasterSelf self, const AskJobWaits& message) {
  want_waits(self, [call = message.call](const JobLook& look) {
    CallResult result;
    result.waits = waits_of(look);
    call->finish(std::move(result));
  });
}

void watched(MasterSelf self, const JobLook& look) {
  auto& s = self->state;
  const WaitsWatch::Found found = s.watch.look(look, waits_of(look));
  for (const std::string& text : found.still) TROUPE_LOG(warning, "master", text);
  for (const LostPart& part : found.lost) {
    const Status why = aborted(fmt::format(
        "worker {} knows nothing of {}, which it was given: a message between the processes was "
        "lost or damaged",
        s.sessions->name_of(part.task), step_name(part.run)));
    TROUPE_LOG(error, "master", why.text());
    feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
      coordinator.lost_message(part.run, part.attempt, part.partition, why, now, out);
    });
  }
}

// Schedules the next watch, as long as there are runs.
void watch_soon(MasterSelf self) {
  if (std::exchange(self->state.watching, true)) return;
  self->delayed_send(self, kWatchEvery, WatchRuns{});
}

void watch_runs(MasterSelf self) {
  auto& s = self->state;
  s.watching = false;
  const auto runs = s.coordinator->looks(self->clock().now().time_since_epoch());
  if (runs.empty()) return;
  watch_soon(self);
  if (std::any_of(runs.begin(), runs.end(),
                  [](const RunLook& run) { return run.attempt_age >= kWatchEvery; }))
    want_waits(self, [self](const JobLook& look) { watched(self, look); });
}

// Checks a message about a run under way. Partitions of this process are trusted.
Status check_member(MasterSelf self, const PartitionDone& message) {
  auto& s = self->state;
  const Sessions::Run* run = s.sessions->find(message.run);
  if (!run || s.executors.contains({run->compiled, message.partition})) return ok_status();
  return check_done(*run->step, message);
}

// The run fails with what is wrong, and the process is expelled.
void expel(MasterSelf self, PartitionDone& message, Status lie) {
  auto& s = self->state;
  const StepShape& step = *s.sessions->find(message.run)->step;
  const std::size_t partition =
      std::min<std::size_t>(message.partition, step.partitions.size() - 1);
  const TaskId task = step.partitions[partition].task;
  if (!s.tasks.contains(task)) return;
  lie = lie.in(fmt::format("in what worker {} says of {}", s.sessions->name_of(task),
                           step_name(message.run)));
  TROUPE_LOG(error, "master", lie.text());
  send_to_task(self, task, ExpelProcess{lie});
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    coordinator.partition_done(PartitionDone::failed(message.attempt, message.run,
                                                     std::uint32_t(partition), std::move(lie)),
                               now, out);
  });
}

void partition_done(MasterSelf self, PartitionDone& message) {
  if (Status lie = check_member(self, message); !lie.ok())
    return expel(self, message, std::move(lie));
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    coordinator.partition_done(std::move(message), now, out);
  });
}

void task_up(MasterSelf self, const TaskUp& message) {
  auto& s = self->state;
  s.coordinator->add_task(message.task, message.name, true);
  s.sessions->task_up(message.task, message.name, message.devices);
  s.tasks[message.task] = message.actor;
}

void task_lost(MasterSelf self, const TaskLost& message) {
  auto& s = self->state;
  if (s.tasks.erase(message.task) == 0) return;
  Status why = unavailable(fmt::format("worker {} is lost: {}", s.sessions->name_of(message.task),
                                       message.why.message()));
  TROUPE_LOG(warning, "master", why.text());
  feed_sessions(self,
                [&](Sessions& sessions, auto& out) { sessions.task_lost(message.task, why, out); });
  feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
    coordinator.task_lost(message.task, message.why, now, out);
  });
}

void ask_place(MasterSelf self, const AskPlace& message) {
  CallResult result;
  result.place =
      std::make_shared<const JobPlace>(self->state.coordinator->ask_place(message.session));
  message.call->finish(std::move(result));
}

// An action with a number: `begin` gets the Call that ends it.
void begin_action(MasterSelf self, const RunId& action, const Acknowledged& acknowledged,
                  std::shared_ptr<Call> call,
                  const std::function<void(const std::shared_ptr<Call>&)>& begin) {
  auto& s = self->state;
  s.actions[action].calls.push_back(std::move(call));
  bool begins = false;
  feed(self, [&](Coordinator& coordinator, Instant, auto& out) {
    begins = coordinator.begin_action(action, acknowledged, out);
  });
  if (!begins) {
    // Answered long ago, and the client has the answer: nobody waits.
    if (!s.coordinator->is_under_way(action)) s.actions.erase(action);
    return;
  }
  auto done = std::make_shared<Call>();
  done->then([self, action](const CallResult& result) {
    self->state.actions[action].unloaded = result.unloaded;
    feed(self, [&](Coordinator& coordinator, Instant, auto& out) {
      coordinator.end_action(action, result.status, out);
    });
  });
  begin(done);
}

// Refused until a resumed program has asked for its place: it might drop what it still needs.
void reset(MasterSelf self, const ResetContainers& message) {
  CallResult result;
  result.status = self->state.coordinator->knows_place();
  if (!result.status.ok()) return message.call->finish(std::move(result));
  begin_action(self, message.action, message.acknowledged, message.call, [&](const auto& call) {
    feed_sessions(self, [&](Sessions& sessions, auto& out) {
      sessions.reset({message.containers, call}, out);
    });
  });
}

void rewind(MasterSelf self, const RewindStep& message) {
  begin_action(self, message.action, message.acknowledged, message.call, [&](const auto& call) {
    feed_sessions(self, [&](Sessions& sessions, auto& out) {
      sessions.rewind({message.session, message.compiled, call}, out);
    });
  });
}

void ask_homes(MasterSelf self, const AskHomes& message) {
  CallResult result;
  result.text = self->state.sessions->homes_of(message.variables);
  result.seen = self->state.coordinator->decided();
  message.call->finish(std::move(result));
}

void mark_place(MasterSelf self, const MarkPlace& message) {
  CallResult result;
  result.status = self->state.coordinator->mark_place(message.session, message.note);
  result.seen = self->state.coordinator->decided();
  message.call->finish(std::move(result));
}

void done_once(MasterSelf self, const DoneOnce& message) {
  self->state.coordinator->done_once(message.session, message.name);
  CallResult result;
  result.seen = self->state.coordinator->decided();
  message.call->finish(std::move(result));
}

void describe(MasterSelf self, const DescribeJob& message) {
  auto& s = self->state;
  CallResult result;
  result.text = s.sessions->text();
  const auto& c = s.coordinator->counters();
  result.text.push_back(fmt::format(
      "commits {} (fast {}), read-only {}, failed {}, conflicts {}, attempts {}, compiled {}, "
      "answers kept {}",
      c.commits, c.fast_commits, c.read_only, c.failed, c.conflicts, c.attempts,
      s.sessions->steps(), s.coordinator->tables().answers));
  if (std::string text = s.coordinator->text(); !text.empty())
    result.text.push_back(std::move(text));
  message.call->finish(std::move(result));
}

MasterActor::behavior_type master_behavior(MasterSelf self, MasterOptions options) {
  auto& s = self->state;
  options.coordinator.explain_within = kExplainWithin;
  s.coordinator.emplace(options.coordinator);
  s.watch = WaitsWatch(options.stands_still);
  s.sessions.emplace(std::move(static_cast<Sessions::Options&>(options)));
  s.graphs = std::make_shared<SessionGraphs>(*options.ops);
  s.trace = std::move(options.trace);
  s.compiler = spawn_compiler(self->system(), options.own_threads);
  self->attach_functor(
      [compiler = s.compiler] { caf::anon_send_exit(compiler, caf::exit_reason::user_shutdown); });
  return {
      // tried in this order
      [self](RunStep& message) { run_step(self, message); },
      [self](PartitionDone& message) { partition_done(self, message); },
      to_coordinator<Staged>(self, &Coordinator::staged),
      to_coordinator<GrantReturned>(self, &Coordinator::grant_returned),
      to_coordinator<BlockedReport>(self, &Coordinator::blocked),
      [self](const TaskWaits& message) { task_told(self, message); },
      to_sessions<StepLoaded>(self, &Sessions::loaded),
      to_sessions<OpenSession>(self, &Sessions::open),
      to_sessions<ExtendSession>(self, &Sessions::ask),
      to_sessions<CompileStep>(self, &Sessions::ask),
      [self](const CancelRun& message) {
        feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
          coordinator.cancel(message.run, message.cause, now, out);
        });
      },
      to_sessions<CloseSession>(self, &Sessions::close),
      [self](const ResetContainers& message) { reset(self, message); },
      [self](const RewindStep& message) { rewind(self, message); },
      [self](const DescribeJob& message) { describe(self, message); },
      [self](const AskJobWaits& message) { ask_waits(self, message); },
      [self](const WaitsDue& message) {
        if (message.round == self->state.waits_round && !self->state.waits_wanted.empty())
          tell_waits(self);
      },
      [self](const WatchRuns&) { watch_runs(self); },
      [self](const AskPlace& message) { ask_place(self, message); },
      [self](const AskHomes& message) { ask_homes(self, message); },
      [self](const MarkPlace& message) { mark_place(self, message); },
      [self](const DoneOnce& message) { done_once(self, message); },
      [self](const TaskUp& message) { task_up(self, message); },
      [self](const TaskLost& message) { task_lost(self, message); },
      [self](const ExecutorsMade& message) {
        for (const auto& [partition, executor] : message.executors)
          self->state.executors[{message.compiled, partition}] = executor;
      },
      to_sessions<GraphExtended>(self, &Sessions::extended),
      to_sessions<StepCompiled>(self, &Sessions::compiled),
      [self](const Tick&) {
        feed(self, [&](Coordinator& coordinator, Instant now, auto& out) {
          if (self->state.wake_up.fired(now)) coordinator.tick(now, out);
        });
      },
  };
}

}  // namespace

MasterActor spawn_master(caf::actor_system& system, MasterOptions options) {
  return spawn_actor<MasterActor>(system, MasterState::name, master_behavior, std::move(options));
}

}  // namespace troupe
