#include "tests/actors/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <cstdlib>

#include "actors/master.hpp"
#include "actors/peer.hpp"
#include "actors/worker.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "serialization/wire.hpp"

namespace troupe::test {

std::uint64_t schedules(std::uint64_t usual) {
  const char* text = std::getenv("TROUPE_SCHEDULES");
  return std::max<std::uint64_t>(usual, text ? std::strtoull(text, nullptr, 10) : 0);
}

// ---- Client ----------------------------------------------------------------------------------

template <class Message>
std::shared_ptr<Call> Client::send(Message message) {
  message.call = std::make_shared<Call>();
  auto call = message.call;
  caf::anon_send(master_, std::move(message));
  return call;
}

Client::Client(MasterActor master, std::uint64_t session, GraphBuilder& graph, int replicas)
    : master_(std::move(master)), session_(session), graph_(graph), replicas_(replicas) {
  script_.push_back({"open", [this] { return send(OpenSession{session_, nullptr}); }, {}});
  script_.push_back({"extend",
                     [this] {
                       return send(ExtendSession{session_, graph_.snapshot(), nullptr});
                     },
                     {}});
}

Client& Client::init() {
  std::vector<Op> targets;
  for (NodeId node : graph_.initializers()) targets.push_back(graph_.find(graph_.node(node).name));
  return compile("init", {}, std::move(targets), 1).run("init");
}

Client& Client::compile(std::string name, std::vector<Output> fetches, std::vector<Op> targets,
                        int replicas) {
  CompileRequest request;
  request.replicas = replicas > 0 ? replicas : replicas_;
  for (const Output& o : fetches)
    request.fetches.push_back({graph_.node(o.node()).name, int(o.port().index), false});
  for (const Op& op : targets) request.targets.push_back(op.name());
  script_.push_back({"compile " + name,
                     [this, request] {
                       return send(CompileStep{session_, request, nullptr});
                     },
                     [this, name](CallResult& result) { compiled_[name] = result.compiled; }});
  return *this;
}

Client::Action Client::make_run(std::string name, Instant timeout) {
  auto begin = [this, name, timeout] {
    RunStep message;
    message.run = {session_, next_run_};
    message.compiled = compiled_.at(name);
    message.timeout = timeout;
    message.acknowledged = {next_run_++, {}};
    return send(std::move(message));
  };
  auto end = [this](CallResult& result) {
    ended_.push_back(result.status);
    fetched_.push_back(std::move(result.fetches));
  };
  return {"run " + name, begin, end};
}

Client& Client::run(std::string name, int times) {
  for (int i = 0; i < times; ++i) script_.push_back(make_run(name, kNever));
  return *this;
}

Client& Client::try_run(std::string name, Instant timeout) {
  script_.push_back(make_run(std::move(name), timeout));
  script_.back().may_fail = true;
  return *this;
}

Client& Client::reset(std::vector<std::string> containers) {
  script_.push_back({"reset",
                     [this, containers] {
                       return send(ResetContainers{containers, nullptr});
                     },
                     {}});
  return *this;
}

Client& Client::close() {
  script_.push_back({"close", [this] { return send(CloseSession{session_, nullptr}); }, {}});
  return *this;
}

void Client::step() {
  Action& action = script_.front();
  if (!call_) {
    call_ = action.begin();
    return;
  }
  auto call = std::move(call_);
  call_ = nullptr;
  if (!action.may_fail) status_ = call->result().status;
  if (status_.ok() && action.end) action.end(call->result());
  script_.pop_front();
}

std::string Client::text() const {
  if (finished()) return fmt::format("session {} is done", session_);
  return fmt::format("session {} {} '{}'", session_, call_ ? "waits for" : "is about to",
                     script_.front().what);
}

// ---- World -----------------------------------------------------------------------------------

namespace {

struct TestConfig : caf::actor_system_config {
  TestConfig() {
    set("scheduler.policy", caf::atom("testing"));
    set("logger.inline-output", true);
  }
};

}  // namespace

struct World::System {
  TestConfig config;
  caf::actor_system actors{config};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(actors.scheduler());
  // Virtual time of the network began then.
  caf::actor_clock::time_point begin = scheduler.clock().now();
};

struct World::Process final : HubOwner {
  Process(World& w, ProcessId n) : world(w), number(n), hub(n, *this) {
    name = number == 0 ? "master" : fmt::format("worker{}", number);
    transport = world.network_.host(name, hub);
    hub.use(*transport);
    hub.limit_early(world.early_);
  }

  Join words() const {
    Join join;
    join.process = number;
    join.incarnation = number + 1;
    join.job = "simulated";
    join.listen_host = name;
    join.listen_port = 1;
    return join;
  }

  // HubOwner: everybody who asks is a member, under the number it gives.
  Expected<ProcessId> admit(PeerId, const Join& join) override { return join.process; }
  void up(ProcessId, const Join&) override { ++world.up_; }
  void down(ProcessId process, Status why) override {
    if (world.leaving_) return;
    if (!world.crashed_)
      world.lost_ = unavailable(
          fmt::format("process {} lost process {}: {}", number, process, why.message()));
    if (number == 0) caf::anon_send(world.master_, ProcessLost{process, std::move(why)});
  }
  void message(ProcessId, WireMessage) override {}

  World& world;
  ProcessId number;
  std::string name;
  NetHub hub;
  std::shared_ptr<Transport> transport;
  std::unique_ptr<SimDevice> device;
  WorkerActor worker;
  CoordinatorActor coordinator;  // the master's proxy there
  ProcessActor proxy;            // this process's proxy at the master
};

World::World(std::uint64_t seed, int workers, const OpTable& ops)
    : ops_(ops),
      random_(seed),
      network_(random_()),
      early_(std::array<std::uint64_t, 3>{0, 1000, Arrivals::kEarlyBytes}[seed % 3]),
      system_(std::make_unique<System>()) {
  for (std::uint64_t* weight : {&job_weight_, &device_weight_, &network_weight_})
    *weight = std::uint64_t{1} << random_.below(5);
  running_before_ = system_->actors.registry().running();
  alive_ = std::make_shared<int>(0);
  MasterOptions options;
  options.ops = &ops_;
  master_ = spawn_master(system_->actors, std::move(options));
  for (ProcessId n = 0; n <= ProcessId(workers); ++n)
    processes_.push_back(std::make_unique<Process>(*this, n));
  processes_[0]->hub.deliver_to(CoordinatorActor(master_));
  for (auto& process : processes_) {
    Hello words = value_or_throw(encode_join(process->words()));
    value_or_throw(process->transport->listen({process->name, 1}, std::move(words)));
  }
  for (std::size_t n = 1; n < processes_.size(); ++n) join(*processes_[n]);
  // Both ends of each connection of the mesh come up before the job begins.
  while (up_ < processes_.size() * (processes_.size() - 1) && step({})) {
  }
  throw_if_error(lost_);
  for (std::size_t n = 1; n < processes_.size(); ++n) announce(*processes_[n]);
}

World::~World() {
  // An actor that does not end would keep its system's destructor waiting for ever: rather leak.
  if (system_ && !shut_down().ok()) (void)system_.release();
}

void World::join(Process& p) {
  auto name = fmt::format("/job:worker/task:{}/device:CPU:0", p.number - 1);
  p.device = make_sim_device(value_or_throw(DeviceName::parse(name)));
  p.coordinator = spawn_master_proxy(system_->actors, p.hub, alive_);
  WorkerOptions options;
  options.process = p.number;
  options.devices = {p.device.get()};
  options.ops = &ops_;
  options.coordinator = p.coordinator;
  options.hub = &p.hub;
  options.alive = alive_;
  p.worker = spawn_worker(system_->actors, std::move(options));
  p.hub.deliver_to(p.worker);
  // The higher number connects.
  for (ProcessId n = 0; n < p.number; ++n)
    throw_if_error(p.hub.connect({processes_[n]->name, 1}, p.words(), n, std::chrono::seconds(1)));
}

void World::announce(Process& p) {
  p.proxy = spawn_process_proxy(system_->actors, processes_[0]->hub, p.number, alive_);
  ProcessUp up;
  up.process = p.number;
  up.name = p.name;
  up.devices = {{p.device->name(), p.device->space()}};
  up.actor = p.proxy;
  caf::anon_send(master_, std::move(up));
}

void World::run_job(std::size_t index) {
  auto& jobs = system_->scheduler.jobs;
  auto chosen = jobs.begin() + std::ptrdiff_t(index);
  std::rotate(jobs.begin(), chosen, chosen + 1);
  system_->scheduler.try_run_once();
}

// The actors' clock follows the network's.
void World::set_clock() {
  auto& clock = system_->scheduler.clock();
  auto due = system_->begin + network_.now();
  if (due > clock.now()) clock.advance_time(due - clock.now());
}

// To whatever comes first: a timeout of an actor or a delivery.
bool World::pass_time() {
  const auto& timers = system_->scheduler.clock().schedule();
  auto delivery = network_.next();
  if (!timers.empty()) {
    auto due =
        std::max<MemoryNetwork::Time>(timers.begin()->first - system_->begin, network_.now());
    if (!delivery || due < *delivery) {
      network_.advance_to(due);
      set_clock();
      if (!timers.empty() && timers.begin()->first <= system_->scheduler.clock().now())
        system_->scheduler.trigger_timeout();
      return true;
    }
  }
  if (!delivery) return false;
  network_.step();
  set_clock();
  return true;
}

// When something happens next if nobody does anything.
std::optional<MemoryNetwork::Time> World::next_time() {
  if (system_->scheduler.has_job()) return now();
  for (auto& process : processes_)
    if (process->device && process->device->pending() > 0) return now();
  auto at = network_.next();
  const auto& timers = system_->scheduler.clock().schedule();
  if (!timers.empty()) {
    auto due = std::max<MemoryNetwork::Time>(timers.begin()->first - system_->begin, now());
    at = at ? std::min(*at, due) : due;
  }
  return at;
}

void World::pass(MemoryNetwork::Time duration) {
  const auto until = now() + duration;
  for (auto next = next_time(); next && *next <= until; next = next_time()) step({});
  network_.advance_to(std::max(now(), until));
  set_clock();
}

std::size_t World::timers() const { return system_->scheduler.clock().schedule().size(); }

bool World::step(const std::vector<Client*>& clients) {
  std::vector<std::pair<std::uint64_t, std::function<void()>>> choices;
  for (std::size_t i = 0; i < system_->scheduler.jobs.size(); ++i)
    choices.emplace_back(job_weight_, [this, i] { run_job(i); });
  for (auto& process : processes_)
    if (process->device && process->device->pending() > 0)
      choices.emplace_back(device_weight_, [&process] { process->device->run_one(); });
  for (Client* client : clients)
    if (client->ready()) choices.emplace_back(job_weight_, [client] { client->step(); });
  ++events_;
  if (choices.empty()) return pass_time();
  if (network_.next()) choices.emplace_back(network_weight_, [this] { pass_time(); });
  std::uint64_t all = 0;
  for (const auto& choice : choices) all += choice.first;
  std::uint64_t drawn = random_.below(all);
  std::size_t chosen = 0;
  while (drawn >= choices[chosen].first) drawn -= choices[chosen++].first;
  trace_ = hash_combine(trace_, hash_combine(choices.size(), chosen));
  choices[chosen].second();
  return true;
}

void World::crash_after(std::uint64_t events, ProcessId process) {
  crash_at_ = events_ + events;
  crash_ = process;
}

Status World::run(const std::vector<Client*>& clients, std::uint64_t most_events) {
  auto pending = [&] {
    std::string text;
    for (const Client* client : clients) text += "; " + client->text();
    return text;
  };
  std::uint64_t until = events_ + most_events;
  while (!std::all_of(clients.begin(), clients.end(), [](Client* c) { return c->finished(); })) {
    if (events_ >= until) return deadline_exceeded(fmt::format("{} events{}", events_, pending()));
    if (!crashed_ && events_ >= crash_at_) {
      crashed_ = true;
      network_.crash(processes_[crash_]->name);
    }
    if (!step(clients)) return unavailable("nothing can happen any more" + pending());
    TROUPE_TRY(lost_);
  }
  return ok_status();
}

Status World::shut_down() {
  leaving_ = true;
  for (auto& process : processes_) {
    if (!process->worker) continue;
    caf::anon_send(process->worker, Leave{});
    caf::anon_send_exit(process->coordinator, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(process->proxy, caf::exit_reason::user_shutdown);
    process->worker = nullptr;
    process->coordinator = nullptr;
    process->proxy = nullptr;
    process->hub.deliver_to(WorkerActor{});
  }
  if (master_) caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
  std::uint64_t until = events_ + 100'000;
  while (events_ < until && step({})) {
  }
  processes_[0]->hub.deliver_to(CoordinatorActor{});
  master_ = nullptr;
  for (auto& process : processes_) process->transport->shutdown();
  std::size_t running = system_->actors.registry().running();
  if (running > running_before_ || alive_.use_count() > 1)
    return failed_precondition(fmt::format("{} actors did not end, {} hold on to the process",
                                           running - running_before_, alive_.use_count() - 1));
  return ok_status();
}

}  // namespace troupe::test
