// The master's side of a job of several processes.
#include <fmt/format.h>
#include <unistd.h>

#include <caf/send.hpp>
#include <random>
#include <thread>

#include "actors/master/master_actor.hpp"
#include "actors/net/tcp.hpp"
#include "actors/processes/children.hpp"
#include "actors/processes/event_queue.hpp"
#include "actors/processes/gathering.hpp"
#include "actors/processes/membership.hpp"
#include "actors/runtime/faults.hpp"
#include "actors/runtime/net_hub.hpp"
#include "actors/runtime/registered.hpp"
#include "actors/runtime/runtime.hpp"
#include "actors/runtime/worker_process.hpp"
#include "core/log.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kStartWithin{20};
// For workers of this machine, once they were told to leave.
constexpr std::chrono::seconds kLeaveWithin{5};
// For what workers have recorded: some megabytes each.
constexpr std::chrono::seconds kGatherWithin{10};
// How often a start asks Cluster::stop. A signal handler can set a flag but wake nobody.
constexpr std::chrono::milliseconds kAskStopEvery{20};

std::string random_bytes(std::size_t n) {
  std::random_device device;
  std::string bytes;
  while (bytes.size() < n) bytes.push_back(char(device() & 0xff));
  return bytes;
}

// How a worker that was started here ended before the job ran. Only of what may be an accident it
// is said that it may be tried again.
Status ended_early(pid_t child, const ChildEnd& end) {
  constexpr int kTryAgain = 75;
  std::string text = fmt::format("worker process {} {} before the job ran", child, end.text());
  if (end.signal != 0 || end.code == kTryAgain) return unavailable(std::move(text));
  if (end.code == 0) text += ": a program becomes a worker where it makes its Session";
  return failed_precondition(std::move(text));
}

// The master's actor, the hub, and the thread that carries out what Membership decides. Events of
// sockets and children go into one queue; it is emptied by whoever starts the job, then by a thread
// of its own until the job is over.
class ClusterRuntime final : public Runtime, public HubOwner {
 public:
  ClusterRuntime(Cluster cluster, caf::actor_system* system, OnFault on_fault)
      : cluster_(std::move(cluster)),
        hub_(0, *this),
        children_([this](pid_t child, const ChildEnd& end) {
          tell([=, status = ended_early(child, end)](Membership& m, Instant now, auto& out) {
            m.child_ended(status, now, out);
          });
        }) {
    hub_.record(trace_);
    words_.job = fmt::format("{:016x}", hash_text(random_bytes(16)));
    words_.registered = registered();
    if (!system) {
      config_ = actor_config();
      owned_.emplace(*config_);
      system = &*owned_;
      if (on_fault) tell_of_faults(*system, std::move(on_fault));
    }
    system_ = system;
  }
  ~ClusterRuntime() override;

  Status start();
  const MasterActor& master() const override { return master_; }
  void start_trace() override;
  Timeline stop_trace() override;

 private:
  void end_other_processes() override {
    children_.kill_all();
    if (transport_) transport_->shutdown();
  }
  // HubOwner
  Status may_connect(const Join& join) const override { return troupe::may_connect(words_, join); }
  void up(PeerId peer, const Join& join) override {
    tell([=](Membership& m, Instant now, auto& out) { m.up(peer, join, now, out); });
  }
  void down(PeerId peer, Status why) override {
    tell([=](Membership& m, Instant now, auto& out) { m.down(peer, why, now, out); });
  }
  void message(ProcessId from, WireMessage message) override {
    if (auto* spans = std::get_if<TraceSpans>(&message)) return told(from, std::move(*spans));
    tell([from, message = std::move(message)](Membership& m, Instant now, auto& out) {
      if (auto* ready = std::get_if<Ready>(&message)) m.ready(from, *ready, now, out);
      if (auto* lost = std::get_if<LinkLost>(&message)) m.link_lost(from, *lost, now, out);
    });
  }

  // An event, from any thread.
  template <class Input>
  void tell(Input input) {
    events_.push([this, input = std::move(input)] { input(*membership_, steady_now(), out_); });
  }
  void told(ProcessId from, TraceSpans spans);
  void begin_gathering();
  void end_gathering();
  void handle_one(Instant until);
  void carry_out(Membership::Output& output);
  void announce(const Membership::Up& up);
  Status with_last_words(Status status) const;

  Status listen();
  Status spawn_workers();

  Cluster cluster_;
  Join words_;  // of this process
  std::string secret_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::optional<caf::actor_system> owned_;
  caf::actor_system* system_ = nullptr;
  EventQueue events_;
  const std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  std::int64_t trace_began_ns_ = 0;
  NetHub hub_;
  std::unique_ptr<Transport> transport_;
  Endpoint endpoint_;
  MasterActor master_;
  std::shared_ptr<void> alive_;
  std::future<void> gone_;

  // Of the thread that handles events.
  std::optional<Membership> membership_;
  Membership::Outputs out_;
  std::vector<ProcessActor> proxies_;
  std::map<ProcessId, std::string> members_;  // those that are not lost: names
  Gathering gathering_;
  std::optional<std::promise<std::vector<ProcessTimeline>>> gathered_;  // who waits for it
  std::optional<Status> started_;
  bool over_ = false;

  std::vector<pid_t> children_here_;
  Children children_;  // tells of their ends until it is gone
  std::thread handler_;
};

void ClusterRuntime::handle_one(Instant until) {
  auto event = events_.take(std::min(until, membership_->next_wakeup()));
  if (event) event();
  membership_->tick(steady_now(), out_);
  for (; !out_.empty(); out_.pop_front()) carry_out(out_.front());
}

void ClusterRuntime::carry_out(Membership::Output& output) {
  if (auto* admit = std::get_if<Membership::Admit>(&output)) {
    hub_.admit(admit->peer, admit->process);
  } else if (auto* close = std::get_if<Membership::Close>(&output)) {
    hub_.close_peer(close->peer, std::move(close->why));
  } else if (auto* send = std::get_if<Membership::Send>(&output)) {
    // What cannot be sent is for a process that is down, of which we hear by itself.
    if (Status status = hub_.send(send->to, send->message); !status.ok())
      TROUPE_LOG(debug, "master", status.text());
  } else if (auto* up = std::get_if<Membership::Up>(&output)) {
    announce(*up);
  } else if (auto* lost = std::get_if<Membership::Lost>(&output)) {
    members_.erase(lost->process);
    gathering_.lost(lost->process);
    if (gathering_.done()) end_gathering();
    caf::anon_send(master_, ProcessLost{lost->process, std::move(lost->why)});
  } else if (auto* note = std::get_if<Membership::Note>(&output)) {
    TROUPE_LOG(warning, "master", note->text);
  } else if (auto* started = std::get_if<Membership::Started>(&output)) {
    started_ = std::move(started->status);
  } else {
    over_ = true;
  }
}

void ClusterRuntime::announce(const Membership::Up& member) {
  ProcessUp up;
  up.process = member.process;
  up.name = member.name;
  // Of types that this process has, too: workers that registered others do not join.
  for (const DeviceName& name : member.devices)
    if (const DeviceType* type = ops::builtin().devices.find(*name.type))
      up.devices.push_back({name, type->space});
  up.actor = spawn_process_proxy(*system_, hub_, member.process, alive_);
  proxies_.push_back(up.actor);
  members_[member.process] = member.name;
  caf::anon_send(master_, std::move(up));
}

// A run that begins afterwards is recorded from its beginning: its messages follow the order on the
// same connections.
void ClusterRuntime::start_trace() {
  trace_began_ns_ = begin_recording(*trace_);
  std::promise<void> told;
  events_.push([&] {
    for (const auto& [process, _] : members_) (void)hub_.send(process, RecordTrace{true});
    told.set_value();
  });
  told.get_future().wait();
}

Timeline ClusterRuntime::stop_trace() {
  Timeline timeline{trace_began_ns_, 0, {end_recording(*trace_)}};
  std::promise<std::vector<ProcessTimeline>> promise;
  auto gathered = promise.get_future();
  events_.push([this, &promise] {
    gathered_ = std::move(promise);
    begin_gathering();
  });
  if (gathered.wait_for(kGatherWithin) == std::future_status::timeout)
    events_.push([this] { end_gathering(); });
  for (ProcessTimeline& worker : gathered.get()) timeline.processes.push_back(std::move(worker));
  timeline.end_ns = Trace::now_ns();
  return timeline;
}

void ClusterRuntime::begin_gathering() {
  for (const auto& [process, name] : members_) {
    gathering_.ask(process, "worker " + name, hub_.clock_of(process));
    if (!hub_.send(process, RecordTrace{false}).ok()) gathering_.lost(process);
  }
  if (gathering_.done()) end_gathering();
}

void ClusterRuntime::told(ProcessId from, TraceSpans spans) {
  events_.push([this, from, spans = std::move(spans)]() mutable {
    gathering_.take(from, std::move(spans));
    if (gathering_.done()) end_gathering();
  });
}

void ClusterRuntime::end_gathering() {
  if (!gathered_) return;
  gathered_->set_value(gathering_.result());
  gathered_.reset();
}

Status ClusterRuntime::listen() {
  secret_ = cluster_.secret;
  if (cluster_.workers > 0 && secret_.empty()) secret_ = random_bytes(32);
  Security security = secret_.empty() ? Security::plaintext() : Security::shared_secret(secret_);
  TROUPE_TRY(TransportLimits limits, limits_with(cluster_.silence));
  TROUPE_TRY(transport_, make_tcp_transport(security, limits, hub_));
  hub_.use(*transport_);
  hub_.handle_inline();
  endpoint_ = {"127.0.0.1", 0};
  if (!cluster_.listen.empty()) {
    TROUPE_TRY(endpoint_, parse_endpoint(cluster_.listen));
  }
  TROUPE_TRY(Hello hello, encode_join(words_));
  auto port = transport_->listen(endpoint_, std::move(hello));
  // Nobody was lost.
  if (port.status().code() == Code::unavailable)
    return failed_precondition(port.status().message());
  TROUPE_TRY(endpoint_.port, std::move(port));
  return ok_status();
}

Status ClusterRuntime::spawn_workers() {
  std::string program = cluster_.worker_program;
  if (program.empty() && cluster_.workers > 0) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0) return failed_precondition("cannot find this program to run it as a worker");
    program.assign(path, std::size_t(n));
  }
  WorkerProcessOptions options;
  options.master = endpoint_;
  options.secret = secret_;
  options.job = words_.job;
  options.silence = cluster_.silence;
  options.parent = getpid();
  const std::string argument = fmt::format("{}{}", kWorkerArgument, Children::kInput);
  for (int w = 0; w < cluster_.workers; ++w) {
    TROUPE_TRY(pid_t child, children_.start(program, {argument}, worker_settings_text(options)));
    children_here_.push_back(child);
  }
  return ok_status();
}

// Of workers that did not join in time.
Status ClusterRuntime::with_last_words(Status status) const {
  if (status.code() != Code::deadline_exceeded) return status;
  std::string text = status.message();
  for (pid_t child : children_here_)
    if (std::string words = children_.last_words(child); !words.empty())
      text += fmt::format("; process {} said '{}'", child, words);
  return deadline_exceeded(std::move(text));
}

Status ClusterRuntime::start() {
  MasterOptions options;
  options.ops = &ops::builtin();
  options.soft_placement = cluster_.soft_placement;
  options.replicas = cluster_.replicas;
  options.disabled_passes = cluster_.disabled_passes;
  options.trace = trace_;
  master_ = spawn_master(*system_, std::move(options));
  hub_.deliver_to(CoordinatorActor(master_));
  auto promise = std::make_shared<std::promise<void>>();
  gone_ = promise->get_future();
  alive_ = std::shared_ptr<void>(promise.get(), [promise](void*) { promise->set_value(); });
  promise.reset();
  Membership::Options job;
  job.workers = std::size_t(std::max(cluster_.workers, cluster_.wait_for));
  job.words = words_;
  job.welcome.threads = std::uint32_t(cluster_.threads);
  job.welcome.step_memory = cluster_.step_memory;
  job.welcome.profile = numeric_profile();
  job.welcome.devices = cluster_.devices;
  job.start_within = kStartWithin;
  if (cluster_.wait_for == 0) job.start_until = steady_now() + job.start_within;
  membership_.emplace(std::move(job));
  TROUPE_TRY(listen());
  TROUPE_TRY(spawn_workers());
  TROUPE_LOG(info, "master",
             fmt::format("waiting for workers at {}: {} wanted", endpoint_.text(),
                         std::max(cluster_.workers, cluster_.wait_for)));
  while (!started_) {
    if (cluster_.stop && cluster_.stop()) membership_->stop(steady_now(), out_);
    handle_one(steady_now() + kAskStopEvery);
  }
  TROUPE_TRY(with_last_words(*started_));
  handler_ = std::thread([this] {
    while (!over_) handle_one(kNever);
  });
  return ok_status();
}

ClusterRuntime::~ClusterRuntime() {
  if (owned_) end_at_faults(*owned_);
  tell([](Membership& m, Instant now, auto& out) { m.leave(now, out); });
  // Those that hold nothing yet need not leave in order.
  if (!handler_.joinable()) children_.kill_all();
  for (pid_t left : children_.wait(kLeaveWithin))
    TROUPE_LOG(
        warning, "master",
        fmt::format("worker process {} was killed and does not end: it is left behind", left));
  if (handler_.joinable())
    handler_.join();
  else
    while (!over_) handle_one(kNever);
  for (const ProcessActor& proxy : proxies_)
    caf::anon_send_exit(proxy, caf::exit_reason::user_shutdown);
  proxies_.clear();
  if (master_) caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
  alive_.reset();
  if (transport_) transport_->shutdown();
  hub_.deliver_to(CoordinatorActor{});
  master_ = nullptr;
  if (gone_.valid()) gone_.wait();
}

}  // namespace

Expected<std::unique_ptr<Runtime>> start_cluster(const Cluster& cluster, caf::actor_system* system,
                                                 Runtime::OnFault on_fault) {
  auto runtime = std::make_unique<ClusterRuntime>(cluster, system, std::move(on_fault));
  TROUPE_TRY(runtime->start());
  return std::unique_ptr<Runtime>(std::move(runtime));
}

}  // namespace troupe
