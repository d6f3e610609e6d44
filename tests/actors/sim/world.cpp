#include "tests/actors/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <cstdlib>

#include "actors/master/master_actor.hpp"
#include "actors/processes/membership.hpp"
#include "actors/processes/mesh.hpp"
#include "actors/runtime/compiler_actor.hpp"
#include "actors/runtime/net_hub.hpp"
#include "actors/worker/worker_actor.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "serialization/wire.hpp"
#include "tests/devices/sim_device.hpp"

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

// What is common to master and worker: a hub, and a machine whose inputs wait in a queue.
struct World::Process : HubOwner {
  Process(World& w, std::string n, std::uint64_t incarnation)
      : world(w), name(std::move(n)), hub(name == "master" ? 0 : ~0u, *this) {
    words.incarnation = incarnation;
    words.job = "simulated";
    words.listen_host = name;
    words.listen_port = 1;
    transport = world.network_.host(name, hub);
    hub.use(*transport);
    hub.limit_early(world.early_);
    value_or_throw(transport->listen({name, 1}, value_or_throw(encode_join(words))));
  }
  virtual void carry_out() = 0;
  void handle_one() {
    auto event = std::move(events.front());
    events.pop_front();
    event();
    carry_out();
  }

  // HubOwner
  Status may_connect(const Join& join) const override { return troupe::may_connect(words, join); }
  void down(PeerId, Status why) override {
    if (!world.leaving_ && !world.crashed_ && !world.link_broken_)
      world.lost_ = unavailable(fmt::format("{} lost a peer: {}", name, why.message()));
  }

  World& world;
  const std::string name;
  ProcessId number = 0;
  Join words;
  NetHub hub;
  std::shared_ptr<Transport> transport;
  std::deque<std::function<void()>> events;
};

struct World::Master final : Process {
  Master(World& w, std::size_t workers) : Process(w, "master", 1), membership(job(workers)) {}

  static Membership::Options job(std::size_t workers) {
    Membership::Options options;
    options.workers = workers;
    options.words.job = "simulated";
    options.welcome.devices = {"CPU"};
    return options;
  }
  void up(PeerId peer, const Join& join) override {
    events.push_back([=, this] { membership.up(peer, join, world.now(), out); });
  }
  void down(PeerId peer, Status why) override {
    Process::down(peer, why);
    events.push_back([=, this] { membership.down(peer, why, world.now(), out); });
  }
  void message(ProcessId from, WireMessage message) override {
    events.push_back([this, from, message = std::move(message)] {
      if (auto* ready = std::get_if<Ready>(&message))
        membership.ready(from, *ready, world.now(), out);
      if (auto* lost = std::get_if<LinkLost>(&message))
        membership.link_lost(from, *lost, world.now(), out);
    });
  }
  void carry_out() override {
    for (; !out.empty(); out.pop_front()) carry_out(out.front());
  }
  void carry_out(Membership::Output& output) {
    if (auto* admit = std::get_if<Membership::Admit>(&output))
      hub.admit(admit->peer, admit->process);
    if (auto* close = std::get_if<Membership::Close>(&output))
      hub.close_peer(close->peer, close->why);
    if (auto* send = std::get_if<Membership::Send>(&output))
      (void)hub.send(send->to, send->message);
    if (auto* up = std::get_if<Membership::Up>(&output)) announce(*up);
    if (auto* lost = std::get_if<Membership::Lost>(&output))
      caf::anon_send(world.master_, ProcessLost{lost->process, lost->why});
    if (auto* started = std::get_if<Membership::Started>(&output)) world.started_ = started->status;
  }
  void announce(const Membership::Up& member) {
    ProcessUp up;
    up.process = member.process;
    up.name = member.name;
    for (const DeviceName& device : member.devices)
      up.devices.push_back({device, MemorySpace::host});
    up.actor = spawn_process_proxy(world.system_->actors, hub, member.process, world.alive_);
    proxies.push_back(up.actor);
    caf::anon_send(world.master_, std::move(up));
  }

  Membership membership;
  Membership::Outputs out;
  std::vector<ProcessActor> proxies;
};

struct World::Worker final : Process {
  Worker(World& w, std::string n, std::uint64_t incarnation)
      : Process(w, std::move(n), incarnation),
        mesh(words,
             value_or_throw(hub.connect({"master", 1}, words, 0, 0, std::chrono::seconds(1)))) {}

  void up(PeerId peer, const Join& join) override {
    events.push_back([=, this] { mesh.up(peer, join, out); });
  }
  void down(PeerId peer, Status why) override {
    Process::down(peer, why);
    events.push_back([=, this] { mesh.down(peer, why, out); });
  }
  void message(ProcessId, WireMessage message) override {
    events.push_back([this, message = std::move(message)] {
      if (auto* welcome = std::get_if<Welcome>(&message)) mesh.welcome(*welcome, out);
      if (auto* members = std::get_if<Members>(&message)) mesh.members(*members, out);
    });
  }
  void carry_out() override {
    for (; !out.empty(); out.pop_front()) carry_out(out.front());
  }
  void carry_out(Mesh::Output& output) {
    if (auto* connect = std::get_if<Mesh::Connect>(&output)) {
      const Member& to = connect->to;
      Join self = words;
      self.process = number;
      mesh.connecting(to.process,
                      hub.connect({to.host, to.port}, self, to.process, to.incarnation,
                                  std::chrono::seconds(1)),
                      out);
    }
    if (auto* admit = std::get_if<Mesh::Admit>(&output)) hub.admit(admit->peer, admit->process);
    if (auto* close = std::get_if<Mesh::Close>(&output)) hub.close_peer(close->peer, close->why);
    if (auto* host = std::get_if<Mesh::Host>(&output)) mesh.hosting(make(host->welcome), out);
    if (auto* report = std::get_if<Mesh::Report>(&output))
      std::visit([&](const auto& message) { (void)hub.send(0, message); }, report->message);
    if (std::holds_alternative<Mesh::End>(output)) events.clear();
  }
  std::vector<std::string> make(const Welcome& welcome) {
    number = welcome.process;
    auto device_name = fmt::format("/job:worker/task:{}/device:CPU:0", welcome.task);
    device = std::make_unique<SimDevice>(value_or_throw(DeviceName::parse(device_name)));
    coordinator = spawn_master_proxy(world.system_->actors, hub, world.alive_);
    WorkerOptions options;
    options.process = number;
    options.devices = {device.get()};
    options.ops = &world.ops_;
    options.own_threads = false;
    options.coordinator = coordinator;
    options.hub = &hub;
    options.alive = world.alive_;
    worker = spawn_worker(world.system_->actors, std::move(options));
    hub.deliver_to(worker);
    return {device->name().text()};
  }

  Mesh mesh;
  Mesh::Outputs out;
  std::unique_ptr<SimDevice> device;
  WorkerActor worker;
  CoordinatorActor coordinator;  // the master's proxy there
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
  options.own_threads = false;
  master_ = spawn_master(system_->actors, std::move(options));
  job_ = std::make_unique<Master>(*this, std::size_t(workers));
  job_->hub.deliver_to(CoordinatorActor(master_));
  for (int n = 1; n <= workers; ++n)
    workers_.push_back(std::make_unique<Worker>(*this, fmt::format("worker{}", n), n + 1));
  while (!started_ && step({})) {
  }
  throw_if_error(lost_);
  throw_if_error(started_ ? *started_ : unavailable("the simulated job does not start"));
  std::sort(workers_.begin(), workers_.end(),
            [](const auto& a, const auto& b) { return a->number < b->number; });
}

World::~World() {
  hold_compilers_ = false;  // what is held does not end
  // An actor that does not end would keep its system's destructor waiting for ever: rather leak.
  if (system_ && !shut_down().ok()) (void)system_.release();
}

namespace {

bool is_compiler(caf::resumable& job) {
  auto* actor = dynamic_cast<caf::scheduled_actor*>(&job);
  return actor != nullptr && std::string_view(actor->name()) == kCompiler;
}

}  // namespace

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

// When an actor or the membership wants to look at the clock.
Instant World::next_timer() const {
  const auto& timers = system_->scheduler.clock().schedule();
  Instant due = leaving_ ? kNever : job_->membership.next_wakeup();
  return timers.empty() ? due : std::min<Instant>(due, timers.begin()->first - system_->begin);
}

// To whatever comes first: a timer or a delivery.
bool World::pass_time() {
  auto delivery = network_.next();
  Instant due = next_timer();
  if (due == kNever && !delivery) return false;
  due = std::max(due, network_.now());
  if (delivery && *delivery <= due) {
    network_.step();
    set_clock();
    return true;
  }
  network_.advance_to(due);
  set_clock();
  const auto& timers = system_->scheduler.clock().schedule();
  if (!timers.empty() && timers.begin()->first <= system_->scheduler.clock().now())
    system_->scheduler.trigger_timeout();
  if (job_->membership.next_wakeup() <= now()) {
    job_->membership.tick(now(), job_->out);
    job_->carry_out();
  }
  return true;
}

// When something happens next if nobody does anything.
std::optional<MemoryNetwork::Time> World::next_time() {
  if (system_->scheduler.has_job() || !job_->events.empty()) return now();
  for (auto& worker : workers_)
    if (!worker->events.empty() || (worker->device && worker->device->pending() > 0)) return now();
  auto at = network_.next();
  const auto& timers = system_->scheduler.clock().schedule();
  if (!timers.empty()) {
    auto due = std::max<MemoryNetwork::Time>(timers.begin()->first - system_->begin, now());
    at = at ? std::min(*at, due) : due;
  }
  if (auto due = job_->membership.next_wakeup(); due != kNever) at = at ? std::min(*at, due) : due;
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
  for (std::size_t i = 0; i < system_->scheduler.jobs.size(); ++i) {
    if (hold_compilers_ && is_compiler(*system_->scheduler.jobs[i])) continue;
    choices.emplace_back(job_weight_, [this, i] { run_job(i); });
  }
  if (!job_->events.empty()) choices.emplace_back(job_weight_, [this] { job_->handle_one(); });
  for (auto& worker : workers_) {
    if (!worker->events.empty())
      choices.emplace_back(job_weight_, [&worker] { worker->handle_one(); });
    if (worker->device && worker->device->pending() > 0)
      choices.emplace_back(device_weight_, [&worker] { worker->device->run_one(); });
  }
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

void World::break_link_after(std::uint64_t events, ProcessId a, ProcessId b) {
  break_at_ = events_ + events;
  break_ = {a, b};
}

void World::inflict_faults() {
  if (!crashed_ && events_ >= crash_at_) {
    crashed_ = true;
    network_.crash(workers_[crash_ - 1]->name);
    workers_[crash_ - 1]->events.clear();
  }
  if (!link_broken_ && events_ >= break_at_) {
    link_broken_ = true;
    network_.reset(workers_[break_.first - 1]->name, workers_[break_.second - 1]->name);
  }
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
    inflict_faults();
    if (!step(clients)) return unavailable("nothing can happen any more" + pending());
    TROUPE_TRY(lost_);
  }
  return ok_status();
}

Status World::shut_down() {
  leaving_ = true;
  for (auto& worker : workers_) {
    if (!worker->worker) continue;
    caf::anon_send(worker->worker, Leave{});
    caf::anon_send_exit(worker->coordinator, caf::exit_reason::user_shutdown);
    worker->worker = nullptr;
    worker->coordinator = nullptr;
    worker->hub.deliver_to(WorkerActor{});
  }
  for (const ProcessActor& proxy : job_->proxies)
    caf::anon_send_exit(proxy, caf::exit_reason::user_shutdown);
  job_->proxies.clear();
  if (master_) caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
  std::uint64_t until = events_ + 100'000;
  while (events_ < until && step({})) {
  }
  job_->hub.deliver_to(CoordinatorActor{});
  master_ = nullptr;
  job_->transport->shutdown();
  for (auto& worker : workers_) worker->transport->shutdown();
  std::size_t running = system_->actors.registry().running();
  if (running > running_before_ || alive_.use_count() > 1)
    return failed_precondition(fmt::format("{} actors did not end, {} hold on to the process",
                                           running - running_before_, alive_.use_count() - 1));
  return ok_status();
}

}  // namespace troupe::test
