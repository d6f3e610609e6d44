#include "actors/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <optional>

#include "actors/dataset.hpp"
#include "actors/device_actor.hpp"
#include "actors/executor.hpp"
#include "actors/files.hpp"
#include "actors/inline_send.hpp"
#include "actors/load.hpp"
#include "actors/protocol/shard.hpp"
#include "actors/protocol/wake_up.hpp"
#include "actors/queue.hpp"
#include "actors/spawn.hpp"
#include "actors/variables.hpp"
#include "core/log.hpp"
#include "ops/compile_host.hpp"

namespace troupe {
namespace {

struct LocalDevice {
  Device* device = nullptr;
  DeviceActor actor;
};

// A resource of this process. Containers and queues are members of the shard, datasets are not.
struct Container {
  ResourceId id;
  VariablesActor actor;
};
struct Queue {
  ResourceId id;
  QueueSpec spec;
  QueueActor actor;
};
using Place = std::pair<std::string, std::string>;  // device, then container or name

// What a partition was compiled for; its kernels rely on it.
struct FeedSpec {
  std::string name;
  DType dtype = DType::invalid;
  PartialShape shape;
};
struct LoadedStep {
  std::map<std::uint32_t, ExecutorActor> executors;      // by partition
  std::map<std::uint32_t, std::vector<FeedSpec>> feeds;  // in the order of Plan::feeds
};

struct WorkerState {
  static constexpr const char* name = kWorker;
  WorkerOptions options;
  std::optional<Shard> shard;
  std::optional<CompileHost> compile_host;
  std::map<std::string, LocalDevice> devices;
  FilesActor files;
  // By session; what came from another process is compiled only once it was checked.
  struct LoadedGraph {
    LoadGraph load;
    Status status;
  };
  std::map<std::uint64_t, LoadedGraph> graphs;
  std::map<CompiledId, LoadedStep> steps;
  std::map<Place, Container> containers;
  std::map<std::pair<Place, std::string>, Queue> queues;  // (device, container), name
  std::map<std::uint64_t, DatasetActor> datasets;         // by a hash of everything they are
  std::map<std::uint32_t, VariablesActor> variables_by_index;
  std::map<std::uint32_t, QueueActor> queues_by_index;
  std::uint32_t next_resource = 0;
  WakeUp wake_up;
};

using Self = WorkerActor::stateful_pointer<WorkerState>;

Instant now(Self self) { return self->clock().now().time_since_epoch(); }

// The shard.

ResourceStaged no_such_resource(const WorkerState& s, const Shard::StageResource& stage) {
  return {stage.request.s, stage.request.attempt, 0,
          not_found(fmt::format("process {} has no container or queue {}", s.options.process,
                                stage.resource.index))};
}

void carry_out(Self self, Shard::Outputs& out) {
  auto& s = self->state;
  Shard::Outputs more;
  for (auto& output : out) {
    if (auto* stage = std::get_if<Shard::StageResource>(&output)) {
      if (auto v = s.variables_by_index.find(stage->resource.index);
          v != s.variables_by_index.end())
        self->send(v->second, stage->request);
      else if (auto q = s.queues_by_index.find(stage->resource.index); q != s.queues_by_index.end())
        self->send(q->second, stage->request);
      else if (!stage->request.withdrawn)  // one that was dropped has nothing staged
        s.shard->staged(stage->resource, no_such_resource(s, *stage), more);
    } else if (auto* live = std::get_if<Shard::ResourceLive>(&output)) {
      for (const auto& [_, v] : s.variables_by_index) self->send(v, live->list);
      for (const auto& [_, q] : s.queues_by_index) self->send(q, live->list);
      for (const auto& [_, step] : s.steps)
        for (const auto& [index, executor] : step.executors) self->send(executor, live->list);
      if (s.options.hub) s.options.hub->live(live->list);
    } else if (auto* staged = std::get_if<Staged>(&output)) {
      self->send(s.options.coordinator, *staged);
    } else if (auto* blocked = std::get_if<BlockedReport>(&output)) {
      self->send(s.options.coordinator, *blocked);
    }
  }
  if (!more.empty()) return carry_out(self, more);
  if (auto runs = s.wake_up.want(s.shard->next_wakeup(), now(self)))
    self->delayed_send(self, *runs, Tick{});
}

// Resources.

Container& container(Self self, const std::string& device, const std::string& name) {
  auto& s = self->state;
  auto [it, fresh] = s.containers.try_emplace({device, name});
  if (fresh) {
    LocalDevice& local = s.devices.at(device);
    it->second.id = {s.options.process, s.next_resource++};
    it->second.actor =
        spawn_variables(self->system(), name.empty() ? "default" : name, it->second.id,
                        *local.device, local.actor, WorkerActor(self), s.options.alive);
    s.variables_by_index[it->second.id.index] = it->second.actor;
  }
  return it->second;
}

Expected<Queue*> queue(Self self, const std::string& device, const ResourceRef& ref) {
  auto& s = self->state;
  TROUPE_TRY(QueueSpec spec, queue_spec(ref));
  auto key = std::make_pair(Place{device, ref.container}, ref.name);
  auto it = s.queues.find(key);
  if (it != s.queues.end()) {
    TROUPE_TRY(QueueState(it->second.spec).compatible(spec).at(ref.def.site));
    return &it->second;
  }
  Queue made;
  made.id = {s.options.process, s.next_resource++};
  made.spec = spec;
  made.actor = spawn_queue(self->system(), spec, made.id, WorkerActor(self));
  s.queues_by_index[made.id.index] = made.actor;
  return &s.queues.emplace(std::move(key), std::move(made)).first->second;
}

// Steps that use them are gone, so nobody asks the old actors for anything any more.
void drop_containers(Self self, const std::vector<std::string>& names) {
  auto& s = self->state;
  auto dropped = [&](const Place& place) {
    return std::find(names.begin(), names.end(), place.second) != names.end();
  };
  std::erase_if(s.containers, [&](const auto& entry) {
    if (!dropped(entry.first)) return false;
    s.variables_by_index.erase(entry.second.id.index);
    self->send_exit(entry.second.actor, caf::exit_reason::user_shutdown);
    return true;
  });
  Shard::Outputs out;
  std::erase_if(s.queues, [&](const auto& entry) {
    if (!dropped(entry.first.first)) return false;
    s.queues_by_index.erase(entry.second.id.index);
    self->send_exit(entry.second.actor, caf::exit_reason::user_shutdown);
    s.shard->blocked(entry.second.id, {}, {}, now(self), out);
    return true;
  });
  carry_out(self, out);
}

DatasetActor dataset(Self self, const ResourceRef& ref) {
  auto& s = self->state;
  std::uint64_t key = hash_text(ref.name, hash_text(ref.container));
  for (const auto& [name, attr] : ref.def.attrs) key = hash_text(name + attr.text(), key);
  auto it = s.datasets.find(key);
  if (it == s.datasets.end())
    it = s.datasets.emplace(key, spawn_dataset(self->system(), ref.def)).first;
  return it->second;
}

Expected<VariableSpec> variable_spec(const ResourceRef& ref) {
  auto dtype = ref.def.attrs.find("T"), shape = ref.def.attrs.find("shape");
  if (dtype == ref.def.attrs.end() || !dtype->second.get<DType>() || shape == ref.def.attrs.end() ||
      !shape->second.get<PartialShape>())
    return invalid_argument("node '" + ref.def.name + "' does not describe a variable");
  return VariableSpec{ref.name, *dtype->second.get<DType>(), *shape->second.get<PartialShape>()};
}

Expected<std::vector<ResourceHandle>> resolve(Self self, const Plan& plan,
                                              std::map<ResourceId, DeclareVariables>& declare) {
  std::vector<ResourceHandle> handles;
  for (const ResourceRef& ref : plan.resources) {
    ResourceHandle handle;
    handle.name = ref.name;
    handle.key = conflict_key(self->state.options.process, ref, plan.device);
    switch (ref.kind) {
      case ResourceRef::Kind::variable: {
        Container& c = container(self, plan.device, ref.container);
        handle.id = c.id;
        handle.variables = c.actor;
        TROUPE_TRY(VariableSpec spec, variable_spec(ref));
        declare[c.id].variables.push_back(std::move(spec));
        break;
      }
      case ResourceRef::Kind::queue: {
        TROUPE_TRY(Queue * q, queue(self, plan.device, ref));
        handle.id = q->id;
        handle.queue = q->actor;
        break;
      }
      case ResourceRef::Kind::dataset:
        handle.dataset = dataset(self, ref);
        break;
    }
    handles.push_back(std::move(handle));
  }
  return handles;
}

// Loading.

// A master in this process has checked the graph; what the wire brings may be anything.
void load_graph(Self self, const LoadGraph& load) {
  auto& s = self->state;
  WorkerState::LoadedGraph loaded{load, {}};
  if (s.options.hub) {
    auto checked = import_graph(*load.graph, s.options.ops->ops);
    if (checked.ok())
      loaded.load.graph = std::make_shared<const GraphDef>(std::move(checked).value());
    else
      loaded.status = checked.status();
  }
  s.graphs.insert_or_assign(load.session, std::move(loaded));
}

Expected<CompiledGraph> compile_again(Self self, const LoadStep& load) {
  auto& s = self->state;
  auto graph = s.graphs.find(load.session);
  if (graph == s.graphs.end() || graph->second.load.version != load.version)
    return failed_precondition(fmt::format("process {} does not have version {} of the graph",
                                           s.options.process, load.version));
  TROUPE_TRY(graph->second.status);
  Target target = s.compile_host->target();
  target.devices = load.devices;
  target.soft_placement = load.soft_placement;
  target.fixed = load.fixed;
  target.disabled = load.disabled_passes;
  return compile(*graph->second.load.graph, load.request, target);
}

Expected<std::shared_ptr<const Program>> make_program(Self self, const Plan& plan, Device& device) {
  const OpTable& ops = *self->state.options.ops;
  return Program::make(std::make_shared<const Plan>(plan), device,
                       [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
                         TROUPE_TRY(const OpInfo* op, ops.ops.lookup(node.def.op));
                         return ops.kernels.make(node.def, *op, *device.name().type);
                       });
}

struct Loading {
  LoadedStep step;
  std::shared_ptr<ChannelRoutes> routes = std::make_shared<ChannelRoutes>();
  std::map<ResourceId, DeclareVariables> declare;
  std::vector<InboundChannel> inbound;
};

std::vector<FeedSpec> feeds_of(Self self, const LoadStep& load, const Plan& plan) {
  const GraphDef& graph = *self->state.graphs.at(load.session).load.graph;
  std::vector<FeedSpec> specs;
  for (const PlanFeed& feed : plan.feeds) {
    const PortName& name = load.request.feeds[feed.feed];
    auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                             [&](const NodeDef& n) { return n.name == name.node; });
    specs.push_back({name.text(), node->out_types[std::size_t(name.port)],
                     node->out_shapes[std::size_t(name.port)]});
  }
  return specs;
}

bool fits(ResourceRef::Kind kind, Role role) {
  switch (role) {
    case Role::read_variable:
    case Role::write_variable:
      return kind == ResourceRef::Kind::variable;
    case Role::enqueue:
    case Role::dequeue:
    case Role::queue_size:
    case Role::queue_close:
      return kind == ResourceRef::Kind::queue;
    case Role::next_element:
      return kind == ResourceRef::Kind::dataset;
    default:
      return true;
  }
}

// "Enqueue" or "Enqueue of [f32]", for errors.
std::string op_and_types(const NodeDef& node) {
  for (const char* name : {"T", "types"})
    if (auto it = node.attrs.find(name); it != node.attrs.end())
      return node.op + " of " + it->second.text();
  return node.op;
}

// All handles have one type: a queue's where a variable's is wanted shows here.
Status check_resources(const Plan& plan) {
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanInfo& info = plan.info[i];
    std::vector<std::uint32_t> used = info.handles;
    if (used.empty() && info.resource != ~0u) used.push_back(info.resource);
    for (std::uint32_t r : used)
      if (r >= plan.resources.size() || !fits(plan.resources[r].kind, plan.nodes[i].role))
        return invalid_argument(r >= plan.resources.size()
                                    ? fmt::format("{} is given no handle", info.def.op)
                                    : fmt::format("{} cannot use the handle '{}' ({})",
                                                  op_and_types(info.def),
                                                  plan.resources[r].def.name,
                                                  op_and_types(plan.resources[r].def)))
            .at(info.def.site)
            .in("in node '" + info.name + "'");
  }
  return ok_status();
}

Status load_partition(Self self, const LoadStep& load, std::uint32_t index, const Plan& plan,
                      Loading& loading) {
  auto& s = self->state;
  LocalDevice& local = s.devices.at(plan.device);
  ExecutorSetup setup;
  setup.compiled = load.compiled;
  setup.partition = index;
  TROUPE_TRY(check_resources(plan));
  if (s.options.hub) loading.step.feeds[index] = feeds_of(self, load, plan);
  TROUPE_TRY(setup.program, make_program(self, plan, *local.device));
  setup.device = local.actor;
  setup.coordinator = s.options.coordinator;
  setup.files = s.files;
  TROUPE_TRY(setup.resources, resolve(self, plan, loading.declare));
  setup.datasets = dataset_reads(plan);
  TROUPE_TRY(setup.writes, write_infos(plan, *s.options.ops, *local.device));
  setup.write_nodes = std::uint32_t(setup.writes.size());
  setup.after = reads_after(plan, setup.writes);
  setup.routes = loading.routes;
  setup.alive = s.options.alive;
  loading.step.executors[index] = spawn_executor(self->system(), std::move(setup));
  return ok_status();
}

// A client's session and the master have checked what they send; another process may not have.
Status check_feeds(const std::vector<FeedSpec>& specs, const std::vector<Tensor>& feeds) {
  if (feeds.size() != specs.size())
    return invalid_argument(
        fmt::format("the step wants {} feeds, not {}", specs.size(), feeds.size()));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const FeedSpec& spec = specs[i];
    const Tensor& t = feeds[i];
    if (t.defined() && t.dtype() == spec.dtype && spec.shape.accepts(t.shape())) continue;
    std::string got = t.defined() ? fmt::format("{}{}", dtype_name(t.dtype()), t.shape().text())
                                  : "an undefined tensor";
    return invalid_argument(fmt::format("feed '{}' is {}{}, not {}", spec.name,
                                        dtype_name(spec.dtype), spec.shape.text(), got));
  }
  return ok_status();
}

void route(Self self, const CompiledGraph& graph, const std::vector<ProcessId>& owner,
           Loading& loading) {
  ProcessId me = self->state.options.process;
  for (const Channel& channel : graph.channels) {
    if (owner[channel.from] == me) {
      ChannelRoutes::Route route;
      route.partition = channel.to;
      route.process = owner[channel.to];
      if (auto it = loading.step.executors.find(channel.to); it != loading.step.executors.end())
        route.local = it->second;
      loading.routes->routes[channel.id] = std::move(route);
    } else if (owner[channel.to] == me) {
      loading.inbound.push_back({channel.id, owner[channel.from], channel.to, channel.dtype,
                                 channel.shape, !channel.frames.empty()});
    }
  }
}

// Answers when every container knows its variables: a run that starts afterwards finds them.
void declare_all(Self self, const LoadStep& load, Loading& loading) {
  auto& s = self->state;
  auto left = std::make_shared<std::pair<std::size_t, Status>>(loading.declare.size(), Status{});
  auto answer = [coordinator = s.options.coordinator, id = load.compiled,
                 process = s.options.process](Status status) {
    caf::anon_send(coordinator, StepLoaded{id, process, std::move(status)});
  };
  if (loading.declare.empty()) return answer(ok_status());
  auto mutex = std::make_shared<std::mutex>();
  for (auto& [id, declare] : loading.declare) {
    declare.done = [left, mutex, answer](Status status) {
      std::lock_guard lock(*mutex);
      if (left->second.ok()) left->second = std::move(status);
      if (--left->first == 0) answer(left->second);
    };
    self->send(s.variables_by_index.at(id.index), std::move(declare));
  }
}

Status load_step(Self self, const LoadStep& load) {
  auto& s = self->state;
  if (s.steps.contains(load.compiled))
    return already_exists(fmt::format("compiled step {} is loaded", load.compiled));
  TROUPE_TRY(CompiledGraph graph, compile_again(self, load));
  std::map<std::string, ProcessId> process_of;
  for (std::size_t i = 0; i < load.devices.size() && i < load.processes.size(); ++i)
    process_of[load.devices[i].name.text()] = load.processes[i];
  std::vector<ProcessId> owner;
  for (const Plan& plan : graph.plans) owner.push_back(process_of[plan.device]);
  Loading loading;
  loading.routes->compiled = load.compiled;
  loading.routes->hub = s.options.hub;
  Status status;
  for (std::uint32_t p = 0; p < graph.plans.size() && status.ok(); ++p) {
    if (owner[p] != s.options.process) continue;
    if (!s.devices.contains(graph.plans[p].device))
      status = not_found("there is no device " + graph.plans[p].device);
    else
      status = load_partition(self, load, p, graph.plans[p], loading);
  }
  if (!status.ok()) {
    for (auto& [_, executor] : loading.step.executors)
      self->send_exit(executor, caf::exit_reason::user_shutdown);
    return status;
  }
  route(self, graph, owner, loading);
  if (s.options.hub && !loading.inbound.empty())
    s.options.hub->expect(load.compiled, std::move(loading.inbound));
  if (s.options.master) {
    ExecutorsMade made;
    made.compiled = load.compiled;
    for (const auto& [index, executor] : loading.step.executors)
      made.executors.emplace_back(index, executor);
    self->send(s.options.master, std::move(made));
  }
  s.steps[load.compiled] = std::move(loading.step);
  declare_all(self, load, loading);
  return ok_status();
}

void unload(Self self, CompiledId id) {
  auto& s = self->state;
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

void refuse(Self self, const AttemptId& attempt, const RunId& run, std::uint32_t partition,
            Status why) {
  PartitionDone done;
  done.attempt = attempt;
  done.run = run;
  done.partition = partition;
  done.status = std::move(why);
  self->send(self->state.options.coordinator, std::move(done));
}

void not_loaded(Self self, const AttemptId& attempt, const RunId& run, CompiledId id,
                std::uint32_t partition) {
  refuse(self, attempt, run, partition,
         not_found(fmt::format("compiled step {} is not loaded in process {}", id,
                               self->state.options.process)));
}

void start(Self self, StartStep& message) {
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

// This process is of no use to the job any more: whoever waits for it is told why.
void give_up(Self self, const Status& why) {
  auto& s = self->state;
  TROUPE_LOG(error, "worker", why.text());
  if (s.options.hub) return s.options.hub->close(0, why);
  if (s.options.master) self->send(s.options.master, ProcessLost{s.options.process, why});
}

void leave(Self self) {
  auto& s = self->state;
  auto reason = caf::exit_reason::user_shutdown;
  for (auto& [_, step] : s.steps)
    for (auto& [index, e] : step.executors) self->send_exit(e, reason);
  for (auto& [_, c] : s.containers) self->send_exit(c.actor, reason);
  for (auto& [_, q] : s.queues) self->send_exit(q.actor, reason);
  for (auto& [_, d] : s.datasets) self->send_exit(d, reason);
  for (auto& [_, d] : s.devices) self->send_exit(d.actor, reason);
  self->send_exit(s.files, reason);
  self->quit(reason);
}

WorkerActor::behavior_type worker_behavior(Self self, WorkerOptions options) {
  auto& s = self->state;
  s.shard.emplace(options.process, options.view);
  s.compile_host.emplace(*options.ops);
  s.files = spawn_files(self->system());
  for (Device* device : options.devices)
    s.devices[device->name().text()] = {device,
                                        spawn_device(self->system(), *device, options.alive)};
  s.options = std::move(options);
  return {
      [self](const LoadGraph& message) { load_graph(self, message); },
      [self](const LoadStep& message) {
        auto& s = self->state;
        if (Status status = load_step(self, message); !status.ok())
          self->send(s.options.coordinator,
                     StepLoaded{message.compiled, s.options.process, std::move(status)});
      },
      [self](const UnloadStep& message) { unload(self, message.compiled); },
      [self](const DropContainers& message) { drop_containers(self, message.containers); },
      [self](StartStep& message) { start(self, message); },
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
      [](const Members&) {},  // the hub's: a worker's resources do not depend on it
      [self](const ExpelProcess& message) { give_up(self, message.why); },
      [self](const Leave&) { leave(self); },
      [self](const StagedAt& message) {
        Shard::Outputs out;
        self->state.shard->staged(message.resource, message.staged, out);
        carry_out(self, out);
      },
      [self](const BlockedAt& message) {
        if (!self->state.queues_by_index.contains(message.resource.index)) return;  // dropped
        Shard::Outputs out;
        self->state.shard->blocked(message.resource, message.waiting, message.marked, now(self),
                                   out);
        carry_out(self, out);
      },
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

WorkerActor spawn_worker(caf::actor_system& system, WorkerOptions options) {
  return spawn_actor<WorkerActor>(system, kWorker, worker_behavior, std::move(options));
}

}  // namespace troupe
