// The master's side of a job of several processes.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <caf/send.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>

#include "actors/master.hpp"
#include "actors/net/tcp.hpp"
#include "actors/node.hpp"
#include "actors/peer.hpp"
#include "actors/processes/children.hpp"
#include "actors/runtime.hpp"
#include "core/log.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kStartWithin{20};
// For workers of this machine, once they were told to leave.
constexpr std::chrono::seconds kLeaveWithin{5};
// How often a start asks Cluster::stop. A signal handler can set a flag but wake nobody.
constexpr std::chrono::milliseconds kAskStopEvery{20};

std::string random_bytes(std::size_t n) {
  std::random_device device;
  std::string bytes;
  while (bytes.size() < n) bytes.push_back(char(device() & 0xff));
  return bytes;
}

class ClusterRuntime final : public Runtime, public HubOwner {
 public:
  ClusterRuntime(Cluster cluster, caf::actor_system* system)
      : cluster_(std::move(cluster)),
        job_(fmt::format("{:016x}", hash_text(random_bytes(16)))),
        hub_(0, *this) {
    if (!system) {
      config_ = actor_config();
      owned_.emplace(*config_);
      system = &*owned_;
    }
    system_ = system;
  }
  ~ClusterRuntime() override;

  Status start();
  const MasterActor& master() const override { return master_; }

 private:
  struct Worker {
    Join join;
    std::uint32_t task = 0;
    std::vector<std::string> devices;
    int ready = 0;  // 1: has devices; 2: is connected to the others
    pid_t pid = 0;
  };

  // HubOwner
  Expected<ProcessId> admit(PeerId peer, const Join& join) override;
  void up(ProcessId process, const Join& join) override;
  void down(ProcessId process, Status why) override;
  void withdrawn(ProcessId process) override;
  void message(ProcessId from, WireMessage message) override;

  Status listen();
  Status spawn_workers();
  Status wait_until_ready();
  void announce();
  Status send_members();

  Cluster cluster_;
  std::string job_;
  std::string secret_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::optional<caf::actor_system> owned_;
  caf::actor_system* system_ = nullptr;
  NetHub hub_;
  std::unique_ptr<Transport> transport_;
  Endpoint endpoint_;
  MasterActor master_;
  std::vector<ProcessActor> proxies_;
  std::shared_ptr<void> alive_;
  std::future<void> gone_;
  Children children_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ProcessId, Worker> workers_;
  bool running_ = false;
  std::atomic<bool> leaving_{false};
  Status failed_;
};

Expected<ProcessId> ClusterRuntime::admit(PeerId, const Join& join) {
  if (join.version != Join{}.version)
    return failed_precondition(fmt::format("protocol version {} is not spoken", join.version));
  if (!join.job.empty() && join.job != job_) return failed_precondition("that is another job");
  std::lock_guard lock(mutex_);
  if (running_ || int(workers_.size()) >= std::max(cluster_.workers, cluster_.wait_for))
    return failed_precondition("the job has all its workers");
  ProcessId process = 1;
  while (workers_.contains(process)) ++process;
  Worker& worker = workers_[process];
  worker.join = join;
  worker.task = process - 1;
  return process;
}

void ClusterRuntime::up(ProcessId process, const Join&) {
  Welcome welcome;
  welcome.process = process;
  welcome.task = process - 1;
  welcome.threads = std::uint32_t(cluster_.threads);
  welcome.profile = numeric_profile();
  welcome.devices = cluster_.devices;
  if (Status status = hub_.send(process, welcome); !status.ok())
    TROUPE_LOG(warning, "master", status.text());
}

void ClusterRuntime::down(ProcessId process, Status why) {
  const bool lost = !leaving_;
  {
    std::lock_guard lock(mutex_);
    workers_.erase(process);  // the end waits for those that are left
    if (lost && !running_ && failed_.ok())
      failed_ = unavailable(
          fmt::format("worker {} left while the job started: {}", process - 1, why.message()));
  }
  changed_.notify_all();
  if (lost) caf::anon_send(master_, ProcessLost{process, std::move(why)});
}

void ClusterRuntime::withdrawn(ProcessId process) {
  std::lock_guard lock(mutex_);
  workers_.erase(process);
}

void ClusterRuntime::message(ProcessId from, WireMessage message) {
  auto* ready = std::get_if<Ready>(&message);
  if (!ready) return;
  {
    std::lock_guard lock(mutex_);
    auto it = workers_.find(from);
    if (it == workers_.end()) return;
    it->second.devices = ready->devices;
    ++it->second.ready;
    if (!ready->status.ok()) failed_ = ready->status;
  }
  changed_.notify_all();
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
  Join hello;
  hello.job = job_;
  TROUPE_TRY(Hello words, encode_join(hello));
  TROUPE_TRY(endpoint_.port, transport_->listen(endpoint_, std::move(words)));
  return ok_status();
}

Status ClusterRuntime::spawn_workers() {
  std::string program = cluster_.worker_program;
  if (program.empty()) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0) return unavailable("cannot find this program to run it as a worker");
    program.assign(path, std::size_t(n));
  }
  NodeOptions options;
  options.master = endpoint_;
  options.secret = secret_;
  options.job = job_;
  options.silence = cluster_.silence;
  const std::string argument = fmt::format("{}{}", kWorkerArgument, Children::kInput);
  for (int w = 0; w < cluster_.workers; ++w)
    TROUPE_TRY(children_.start(program, {argument}, node_options_text(options)));
  return ok_status();
}

Status ClusterRuntime::send_members() {
  Members members;
  members.view = 1;
  for (const auto& [process, worker] : workers_)
    members.members.push_back(
        {process, worker.join.incarnation, worker.join.listen_host, worker.join.listen_port});
  for (const auto& [process, worker] : workers_) TROUPE_TRY(hub_.send(process, members));
  return ok_status();
}

Status ClusterRuntime::wait_until_ready() {
  std::size_t wanted = std::size_t(std::max(cluster_.workers, cluster_.wait_for));
  auto until = std::chrono::steady_clock::now() + kStartWithin;
  std::unique_lock lock(mutex_);
  auto all = [&](int stage) {
    if (workers_.size() < wanted) return false;
    for (const auto& [_, worker] : workers_)
      if (worker.ready < stage) return false;
    return true;
  };
  TROUPE_LOG(info, "master",
             fmt::format("waiting for workers at {}: {} wanted", endpoint_.text(), wanted));
  for (int stage : {1, 2}) {
    while (!all(stage) && failed_.ok()) {
      if (cluster_.stop && cluster_.stop())
        return cancelled(
            fmt::format("stopped when {} of {} workers had joined", workers_.size(), wanted));
      if (cluster_.wait_for == 0 && std::chrono::steady_clock::now() >= until)
        return deadline_exceeded(fmt::format("{} of {} workers joined within {} s", workers_.size(),
                                             wanted, kStartWithin.count()));
      changed_.wait_for(lock, kAskStopEvery);
    }
    TROUPE_TRY(failed_);
    if (stage == 1) TROUPE_TRY(send_members());
  }
  running_ = true;
  return ok_status();
}

void ClusterRuntime::announce() {
  for (const auto& [process, worker] : workers_) {
    ProcessUp up;
    up.process = process;
    up.name =
        fmt::format("{} at {}:{}", worker.task, worker.join.listen_host, worker.join.listen_port);
    for (const std::string& text : worker.devices) {
      auto name = DeviceName::parse(text);
      if (name.ok())
        up.devices.push_back(
            {*name, *name->type == "CPU" ? MemorySpace::host : MemorySpace::device});
    }
    up.actor = spawn_process_proxy(*system_, hub_, process, alive_);
    proxies_.push_back(up.actor);
    caf::anon_send(master_, std::move(up));
  }
  alive_.reset();
}

Status ClusterRuntime::start() {
  MasterOptions options;
  options.ops = &ops::builtin();
  options.soft_placement = cluster_.soft_placement;
  options.disabled_passes = cluster_.disabled_passes;
  master_ = spawn_master(*system_, std::move(options));
  hub_.deliver_to(CoordinatorActor(master_));
  auto promise = std::make_shared<std::promise<void>>();
  gone_ = promise->get_future();
  alive_ = std::shared_ptr<void>(promise.get(), [promise](void*) { promise->set_value(); });
  promise.reset();
  TROUPE_TRY(listen());
  TROUPE_TRY(spawn_workers());
  TROUPE_TRY(wait_until_ready());
  announce();
  return ok_status();
}

ClusterRuntime::~ClusterRuntime() {
  leaving_ = true;
  std::vector<ProcessId> members;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [process, _] : workers_) members.push_back(process);
    if (!running_) children_.kill_all();
  }
  for (ProcessId process : members) (void)hub_.send(process, Leave{});
  for (const ProcessActor& proxy : proxies_)
    caf::anon_send_exit(proxy, caf::exit_reason::user_shutdown);
  proxies_.clear();
  if (master_) caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
  alive_.reset();
  // Workers leave and close their connections; then ours go.
  children_.wait(kLeaveWithin);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(2), [&] { return workers_.empty(); });
  }
  if (transport_) transport_->shutdown();
  hub_.deliver_to(CoordinatorActor{});
  master_ = nullptr;
  if (gone_.valid()) gone_.wait();
}

}  // namespace

Expected<std::unique_ptr<Runtime>> start_cluster(const Cluster& cluster,
                                                 caf::actor_system* system) {
  auto runtime = std::make_unique<ClusterRuntime>(cluster, system);
  TROUPE_TRY(runtime->start());
  return std::unique_ptr<Runtime>(std::move(runtime));
}

}  // namespace troupe
