#include "actors/worker/worker_actor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "actors/inline_send.hpp"
#include "actors/resources/lost_device.hpp"
#include "actors/runtime/compiler_actor.hpp"
#include "actors/spawn.hpp"
#include "actors/wake_up.hpp"
#include "actors/worker/device_actor.hpp"
#include "actors/worker/executor_actor.hpp"
#include "actors/worker/load_step.hpp"
#include "actors/worker/resource_table.hpp"
#include "actors/worker/shard.hpp"
#include "core/log.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

struct LoadedStep {
  std::map<std::uint32_t, ExecutorActor> executors;      // by partition
  std::map<std::uint32_t, std::vector<FeedSpec>> feeds;  // in the order of Plan::feeds
  std::vector<std::shared_ptr<void>> held;               // ResourceTable::Found
};

struct WorkerState {
  static constexpr const char* name = "worker";
  static constexpr InlineWork kInline = InlineWork::short_work;
  WorkerOptions options;
  std::optional<Shard> shard;
  std::map<std::string, ResourceTable::Place> devices;
  std::optional<ResourceTable> resources;
  CompilerActor compiler;
  std::shared_ptr<StepLoader> loader;        // used by the compile thread only
  std::map<CompiledId, StopFlag> preparing;  // steps being compiled there
  std::map<CompiledId, LoadedStep> steps;
  std::map<std::uint64_t, std::string> plights;  // why attempts wait, by resource hash
  std::shared_ptr<StepMemories> memories;        // null: no limit
  WakeUp wake_up;
  bool gave_up = false;
};

using WorkerSelf = WorkerActor::stateful_pointer<WorkerState>;

Instant now(WorkerSelf self) { return self->clock().now().time_since_epoch(); }

// The shard.

ResourceStaged no_such_resource(const WorkerState& s, const Shard::StageResource& stage) {
  return {stage.request.s, stage.request.attempt, 0,
          not_found(fmt::format("task {} has no resource {:x}", number(s.options.task),
                                stage.resource.hash))};
}

// Immediate answers add their outputs to `more`.
void carry_out(WorkerSelf self, const Shard::StageResource& stage, Shard::Outputs& more) {
  auto& s = self->state;
  const auto& resources = s.resources->participants();
  if (auto r = resources.find(stage.resource.hash); r != resources.end())
    self->send(r->second, stage.request);
  else if (stage.request.order != StageOrder::withdraw)  // a dropped resource has nothing staged
    s.shard->staged(stage.resource, no_such_resource(s, stage), more);
}

void carry_out(WorkerSelf self, const Shard::ResourceLive& live, Shard::Outputs&) {
  const auto& resources = self->state.resources->participants();
  if (auto r = resources.find(live.resource.hash); r != resources.end())
    self->send(r->second, live.list);
}

void carry_out(WorkerSelf self, const Shard::TaskLive& live, Shard::Outputs&) {
  auto& s = self->state;
  for (const auto& [_, step] : s.steps)
    for (const auto& [index, executor] : step.executors) self->send(executor, live.list);
  if (s.options.hub) s.options.hub->live(live.list);
}

void carry_out(WorkerSelf self, const Staged& staged, Shard::Outputs&) {
  self->send(self->state.options.coordinator, staged);
}

void carry_out(WorkerSelf self, const BlockedReport& blocked, Shard::Outputs&) {
  self->send(self->state.options.coordinator, blocked);
}

void carry_out(WorkerSelf self, Shard::Outputs& out) {
  auto& s = self->state;
  Shard::Outputs more;
  for (auto& output : out) std::visit([&](auto& what) { carry_out(self, what, more); }, output);
  if (!more.empty()) return carry_out(self, more);
  if (auto runs = s.wake_up.want(s.shard->next_wakeup(), now(self)))
    self->delayed_send(self, *runs, Tick{});
}

// Waits.

void tell_waits(WorkerSelf self, const AskWaits& message) {
  auto& s = self->state;
  auto gathering = std::make_shared<WaitsGathering>();
  gathering->answer.round = message.round;
  gathering->answer.task = s.options.task;
  for (const auto& [id, step] : s.steps) gathering->answer.loaded.push_back(id);
  for (const auto& [id, stop] : s.preparing) gathering->answer.preparing.push_back(id);
  gathering->resources = s.plights;
  gathering->send = [to = s.options.coordinator](TaskWaits waits) {
    caf::anon_send(to, std::move(waits));
  };
  std::size_t executors = 0;
  for (const auto& [id, step] : s.steps) executors += step.executors.size();
  gathering->parts.resize(executors);
  for (const auto& [id, step] : s.steps)
    for (const auto& [index, executor] : step.executors)
      self->send(executor, TellWaits{gathering, --executors});
}

// Resources.

// REQUIRES: steps that use them are unloaded.
void drop_containers(WorkerSelf self, const std::vector<std::string>& names) {
  auto& s = self->state;
  Shard::Outputs out;
  for (const ResourceId& id : s.resources->drop(names)) {
    s.plights.erase(id.hash);
    s.shard->blocked(id, {}, {}, now(self), out);
    s.shard->wish_lists(id, false, out);
  }
  carry_out(self, out);
}

// Nothing, if it was dropped; there may be another one of that id.
void wish_lists(WorkerSelf self, const WishLists& message) {
  auto& s = self->state;
  const auto& resources = s.resources->participants();
  const auto at = resources.find(message.resource.hash);
  if (at == resources.end() || self->current_sender() == nullptr ||
      self->current_sender()->id() != at->second->id())
    return;
  Shard::Outputs out;
  s.shard->wish_lists(message.resource, message.on, out);
  carry_out(self, out);
}

// Loading.

struct Loading {
  LoadedStep step;
  std::shared_ptr<ChannelRoutes> routes = std::make_shared<ChannelRoutes>();
  ResourceTable::Declared declared;
  std::vector<InboundChannel> inbound;
};

// Finds or makes the resources of the plan.
Status resolve(WorkerSelf self, PreparedStep::Partition& partition, Loading& loading,
               ExecutorSetup& setup) {
  auto& s = self->state;
  const Plan& plan = partition.program->plan();
  for (std::uint32_t r = 0; r < plan.resources.size(); ++r) {
    const ResourceRef& ref = plan.resources[r];
    TROUPE_TRY(auto found,
               ref.kind == "dataset"
                   ? s.resources->dataset(ref, partition.functions[r], self->system())
                   : s.resources->find(ref, s.devices.at(plan.device), WorkerActor(self),
                                       self->system(), loading.declared));
    setup.resources.push_back(found.actor);
    setup.partition.resources.push_back(
        {found.id, ref.name, conflict_key(s.options.task, ref, plan.device), found.outside});
    if (found.held) loading.step.held.push_back(std::move(found.held));
  }
  return ok_status();
}

Status load_partition(WorkerSelf self, CompiledId compiled, const PreparedStep& prepared,
                      PreparedStep::Partition& partition, Loading& loading) {
  auto& s = self->state;
  const Plan& plan = partition.program->plan();
  ExecutorSetup setup;
  setup.compiled = compiled;
  setup.partition.partition = partition.index;
  for (const Channel& channel : prepared.channels)
    if (channel.to == partition.index)
      setup.partition.inbound[channel.id] = {channel.name, channel.from};
  if (s.options.hub) loading.step.feeds[partition.index] = std::move(partition.feeds);
  setup.device = s.devices.at(plan.device).lanes;
  setup.coordinator = s.options.coordinator;
  setup.worker = WorkerActor(self);
  TROUPE_TRY(resolve(self, partition, loading, setup));
  setup.partition.datasets = dataset_reads(plan);
  setup.partition.program = std::move(partition.program);
  setup.partition.writes = std::move(partition.writes);
  setup.partition.copies = std::move(partition.copies);
  setup.partition.after = std::move(partition.after);
  setup.partition.trace = s.options.trace;
  setup.partition.memories = s.memories;
  setup.routes = loading.routes;
  setup.alive = s.options.alive;
  loading.step.executors[partition.index] = spawn_executor(self->system(), std::move(setup));
  return ok_status();
}

void route(WorkerSelf self, const PreparedStep& prepared, Loading& loading) {
  const TaskId me = self->state.options.task;
  const std::vector<TaskId>& tasks = prepared.tasks;
  for (const Channel& channel : prepared.channels) {
    if (tasks[channel.from] == me) {
      ChannelRoutes::Route route;
      route.partition = channel.to;
      route.task = tasks[channel.to];
      if (auto it = loading.step.executors.find(channel.to); it != loading.step.executors.end())
        route.local = it->second;
      loading.routes->routes[channel.id] = std::move(route);
    } else if (tasks[channel.to] == me) {
      loading.inbound.push_back({channel.id, tasks[channel.from], channel.to, channel.dtype,
                                 channel.shape, !channel.loop.empty()});
    }
  }
}

void give_up(WorkerSelf self, const Status& why);

// A step that cannot be loaded since a device has failed: the process leaves.
void answer_load(WorkerSelf self, CompiledId compiled, Status status) {
  auto& s = self->state;
  for (Device* device : s.options.devices)
    if (shows_failure(status, *device)) return give_up(self, without(*device, status));
  self->send(s.options.coordinator, StepLoaded{compiled, s.options.task, std::move(status)});
}

// The answers of a step's containers. Each writes its own entry; the last one answers the load.
struct Declaring {
  explicit Declaring(std::size_t containers) : said(containers), left(containers) {}
  std::vector<Status> said;
  std::atomic<std::size_t> left;
};

// A step is loaded when every container has declared its variables, so that later runs find them.
void declare_all(WorkerSelf self, CompiledId compiled, ResourceTable::Declared& declared) {
  if (declared.empty()) return answer_load(self, compiled, ok_status());
  const WorkerOptions& options = self->state.options;
  auto declaring = std::make_shared<Declaring>(declared.size());
  std::size_t place = 0;
  for (auto& [id, entry] : declared) {
    auto& [variables, declare] = entry;
    declare.done = [declaring, place = place++, compiled, task = options.task,
                    coordinator = options.coordinator](Status status) {
      declaring->said[place] = std::move(status);
      if (declaring->left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
      const auto& said = declaring->said;
      const auto bad =
          std::find_if(said.begin(), said.end(), [](const Status& s) { return !s.ok(); });
      caf::anon_send(coordinator,
                     StepLoaded{compiled, task, bad == said.end() ? ok_status() : *bad});
    };
    self->send(variables, std::move(declare));
  }
}

void load_graph(WorkerSelf self, const LoadGraph& message) {
  auto& s = self->state;
  self->send(s.compiler, CompileWork{[loader = s.loader, message] { loader->load(message); }});
}

// Decoded where it is loaded. One that is none ends the connection to the master.
void load_graph(WorkerSelf self, EncodedGraph& message) {
  auto& s = self->state;
  auto work = [loader = s.loader, message = std::move(message), hub = s.options.hub,
               alive = s.options.alive]() mutable {
    const auto graph = decode(std::exchange(message, {}).bytes);
    if (graph.ok()) return loader->load(std::get<LoadGraph>(*graph));
    TROUPE_LOG(warning, "worker", graph.status().text());
    hub->close(0, graph.status());
  };
  self->send(s.compiler, CompileWork{std::move(work)});
}

// Compiles on the compile thread. StepPrepared continues, unless the step was unloaded meanwhile.
void prepare_step(WorkerSelf self, const LoadStep& message) {
  auto& s = self->state;
  if (s.steps.contains(message.compiled) || s.preparing.contains(message.compiled))
    return answer_load(self, message.compiled,
                       already_exists(fmt::format("compiled step {} is loaded", message.compiled)));
  StopFlag stop = std::make_shared<std::atomic<bool>>(false);
  s.preparing[message.compiled] = stop;
  auto work = [loader = s.loader, stop, message, worker = WorkerActor(self),
               alive = s.options.alive] {
    if (*stop) return;
    auto step =
        std::make_shared<PreparedStep>(loader->prepare(message, [&] { return stop->load(); }));
    caf::anon_send(worker, StepPrepared{message.compiled, std::move(step), stop});
  };
  self->send(s.compiler, CompileWork{std::move(work)});
}

Status load_step(WorkerSelf self, CompiledId compiled, PreparedStep& prepared) {
  auto& s = self->state;
  TROUPE_TRY(prepared.status);
  Loading loading;
  loading.routes->compiled = compiled;
  loading.routes->hub = s.options.hub;
  loading.routes->handle_inline = s.options.handle_inline;
  Status status;
  for (PreparedStep::Partition& partition : prepared.partitions)
    if (status.ok()) status = load_partition(self, compiled, prepared, partition, loading);
  if (!status.ok()) {
    for (auto& [_, executor] : loading.step.executors)
      self->send_exit(executor, caf::exit_reason::user_shutdown);
    return status;
  }
  route(self, prepared, loading);
  if (s.options.hub && !loading.inbound.empty())
    s.options.hub->expect(compiled, std::move(loading.inbound));
  if (s.options.master) {
    ExecutorsMade made;
    made.compiled = compiled;
    for (const auto& [index, executor] : loading.step.executors)
      made.executors.emplace_back(index, executor);
    self->send(s.options.master, std::move(made));
  }
  s.steps[compiled] = std::move(loading.step);
  declare_all(self, compiled, loading.declared);
  return ok_status();
}

void step_prepared(WorkerSelf self, const StepPrepared& message) {
  auto& s = self->state;
  auto at = s.preparing.find(message.compiled);
  if (at == s.preparing.end() || at->second != message.stop) return;
  s.preparing.erase(at);
  if (Status status = load_step(self, message.compiled, *message.step); !status.ok())
    answer_load(self, message.compiled, std::move(status));
}

void unload(WorkerSelf self, CompiledId id) {
  auto& s = self->state;
  if (auto preparing = s.preparing.extract(id)) *preparing.mapped() = true;
  auto step = s.steps.extract(id);
  if (step.empty()) return;
  for (auto& [_, executor] : step.mapped().executors)
    self->send_exit(executor, caf::exit_reason::user_shutdown);
  if (s.options.hub) s.options.hub->forget(id);
}

const ExecutorActor* executor(WorkerState& s, CompiledId id, std::uint32_t partition) {
  auto step = s.steps.find(id);
  if (step == s.steps.end()) return nullptr;
  auto it = step->second.executors.find(partition);
  return it == step->second.executors.end() ? nullptr : &it->second;
}

void refuse(WorkerSelf self, const AttemptId& attempt, const RunId& run, std::uint32_t partition,
            Status why) {
  self->send(self->state.options.coordinator,
             PartitionDone::failed(attempt, run, partition, std::move(why)));
}

void not_loaded(WorkerSelf self, const AttemptId& attempt, const RunId& run, CompiledId id,
                std::uint32_t partition) {
  refuse(self, attempt, run, partition,
         not_found(fmt::format("compiled step {} is not loaded at task {}", id,
                               number(self->state.options.task))));
}

void start_partition(WorkerSelf self, StartPartition& message) {
  const ExecutorActor* e = executor(self->state, message.compiled, message.partition);
  if (!e)
    return not_loaded(self, message.attempt.id, message.attempt.run, message.compiled,
                      message.partition);
  auto& step = self->state.steps.at(message.compiled);
  if (auto specs = step.feeds.find(message.partition); specs != step.feeds.end())
    if (Status status = check_feeds(specs->second, message.feeds); !status.ok())
      return refuse(self, message.attempt.id, message.attempt.run, message.partition,
                    std::move(status));
  self->send(*e, std::move(message));
}

// This process can no longer serve the job: the master is told why, once.
void give_up(WorkerSelf self, const Status& why) {
  auto& s = self->state;
  if (std::exchange(s.gave_up, true)) return;
  TROUPE_LOG(error, "worker", why.text());
  if (s.options.hub) return s.options.hub->close(0, why);
  if (s.options.master) self->send(s.options.master, TaskLost{s.options.task, why});
}

void leave(WorkerSelf self) {
  auto& s = self->state;
  auto reason = caf::exit_reason::user_shutdown;
  for (auto& [_, step] : s.steps)
    for (auto& [index, e] : step.executors) self->send_exit(e, reason);
  s.resources->end_all();
  for (auto& [_, d] : s.devices) self->send_exit(d.lanes, reason);
  for (auto& [_, stop] : s.preparing) *stop = true;
  self->send_exit(s.compiler, reason);
  self->quit(reason);
}

WorkerActor::behavior_type worker_behavior(WorkerSelf self, WorkerOptions options) {
  auto& s = self->state;
  s.shard.emplace(options.task, options.view);
  s.loader = std::make_shared<StepLoader>(options.task, *options.ops, options.devices,
                                          options.hub != nullptr);
  s.compiler = spawn_compiler(self->system(), options.own_threads);
  s.resources.emplace(ResourceTable::Options{options.task, options.alive, options.own_threads,
                                             options.step_memory, options.files, options.random,
                                             options.trace});
  for (Device* device : options.devices)
    s.devices[device->name().text()] = {device->name().text(), device,
                                        spawn_device(self->system(), *device, options.alive)};
  if (options.step_memory > 0) s.memories = std::make_shared<StepMemories>(options.step_memory);
  s.options = std::move(options);
  return {
      [self](const LoadGraph& message) { load_graph(self, message); },
      [self](EncodedGraph& message) { load_graph(self, message); },
      [self](const LoadStep& message) { prepare_step(self, message); },
      [self](const ForgetGraph& message) {
        self->send(self->state.compiler,
                   CompileWork{[loader = self->state.loader, session = message.session] {
                     loader->forget(session);
                   }});
      },
      [self](const UnloadStep& message) { unload(self, message.compiled); },
      [self](const DropContainers& message) { drop_containers(self, message.containers); },
      [self](StartPartition& message) { start_partition(self, message); },
      [self](AbortPartition& message) {
        if (message.cause.ok()) message.cause = aborted("the attempt was ended without a cause");
        if (const ExecutorActor* e = executor(self->state, message.compiled, message.partition))
          self->send(*e, message);
        else
          not_loaded(self, message.attempt, message.run, message.compiled, message.partition);
      },
      [self](const RevokeGrant& message) {
        if (const ExecutorActor* e = executor(self->state, message.compiled, message.partition))
          self->send(*e, message);
      },
      [self](const Prepare& message) {
        Shard::Outputs out;
        self->state.shard->prepare(message, out);
        carry_out(self, out);
      },
      [self](const LiveList& message) {
        Shard::Outputs out;
        self->state.shard->live(message, out);
        carry_out(self, out);
      },
      [self](const AskWaits& message) { tell_waits(self, message); },
      [](const Members&) {},  // for the hub; a worker does not need it
      [self](const ExpelProcess& message) { give_up(self, message.why); },
      [self](const Leave&) { leave(self); },
      [self](const StepPrepared& message) { step_prepared(self, message); },
      [self](const StagedAt& message) {
        Shard::Outputs out;
        self->state.shard->staged(message.resource, message.staged, out);
        carry_out(self, out);
      },
      [self](const BlockedAt& message) {
        if (!self->state.resources->participants().contains(message.resource.hash)) return;
        if (message.waiting.empty())
          self->state.plights.erase(message.resource.hash);
        else
          self->state.plights[message.resource.hash] = message.why;
        Shard::Outputs out;
        self->state.shard->blocked(message.resource, message.waiting, message.marked, now(self),
                                   out);
        carry_out(self, out);
      },
      [self](const WishLists& message) { wish_lists(self, message); },
      [self](TensorArrived& message) {
        if (const ExecutorActor* e = executor(self->state, message.compiled, message.partition))
          self->send(*e, std::move(message));
      },
      [self](const Tick&) {
        auto& s = self->state;
        Shard::Outputs out;
        if (s.wake_up.fired(now(self))) s.shard->tick(now(self), out);
        carry_out(self, out);
      },
  };
}

}  // namespace

WaitsGathering::~WaitsGathering() {
  if (!send) return;
  for (std::vector<NodeWait>& part : parts)
    for (NodeWait& wait : part) {
      answer.cut = answer.waits.size() == TaskWaits::kMost;
      if (answer.cut) break;
      if (const auto plight = resources.find(wait.resource);
          wait.on == Wait::On::resource && plight != resources.end() && !plight->second.empty()) {
        wait.on = Wait::On::queue;
        wait.what = (wait.what + ", which " + plight->second).substr(0, TaskWaits::kMostText);
      }
      answer.waits.push_back(std::move(wait));
    }
  send(std::move(answer));
}

WorkerActor spawn_worker(caf::actor_system& system, WorkerOptions options) {
  return spawn_actor<WorkerActor>(system, WorkerState::name, worker_behavior, std::move(options));
}

}  // namespace troupe
