#include "actors/node.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/stat.h>
#include <unistd.h>

#include <caf/send.hpp>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "actors/net/tcp.hpp"
#include "actors/peer.hpp"
#include "actors/runtime.hpp"
#include "actors/worker.hpp"
#include "core/log.hpp"
#include "ops/isa.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kJoinWithin{10};
constexpr std::chrono::milliseconds kLeastSilence{250}, kMostSilence = std::chrono::hours(24);
// What a master may ask for. Each thread and device costs memory before it computes anything.
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::size_t kMostDevices = 16;
constexpr std::uint32_t kMostTasks = 1u << 20;

// Makes this process compute as its master does. failed_precondition when it cannot.
Status apply(const NumericProfile& profile) {
  NumericProfile mine = numeric_profile();
  if (profile.kernels != mine.kernels || profile.isa > mine.isa)
    return failed_precondition(
        fmt::format("this process cannot compute as the master does: {} against {}",
                    profile_text(mine), profile_text(profile)));
  TROUPE_TRY(ops::limit_isa(int(profile.isa)));
  return ops::set_cache_sizes({profile.l1, profile.l2, profile.l3});
}

// Membership of a worker: what the master told, who is connected. All waiting happens on the main
// thread of the process, in `next`.
class WorkerNode final : public HubOwner {
 public:
  explicit WorkerNode(NodeOptions options) : options_(std::move(options)), hub_(~0u, *this) {}

  Status run();

 private:
  // HubOwner
  Expected<ProcessId> admit(PeerId, const Join& join) override {
    if (join.version != Join{}.version)
      return failed_precondition(fmt::format("protocol version {} is not spoken", join.version));
    if (join.job != options_.job) return failed_precondition("that is another job");
    if (join.process == 0) return invalid_argument("only members of the job connect here");
    if (hub_.connected(join.process))
      return already_exists(fmt::format("process {} is connected already", join.process));
    return join.process;
  }
  void up(ProcessId process, const Join&) override {
    push([this, process] {
      connected_.insert(process);
      return mesh_ready();
    });
  }
  void down(ProcessId process, Status why) override {
    push([this, process, why]() -> Status {
      connected_.erase(process);
      if (process == 0) {
        left_ = true;
        return unavailable("the master is lost: " + why.message());
      }
      // Nobody tries again: the mesh would never be whole, and the master wait for it.
      if (!told_ready_ && process < self_ && wanted_.contains(process))
        return unavailable(fmt::format("process {} cannot be reached: {}", process, why.message()));
      return ok_status();
    });
  }
  void message(ProcessId, WireMessage message) override {
    push([this, message = std::move(message)]() -> Status {
      if (auto* welcome = std::get_if<Welcome>(&message)) return take(*welcome);
      if (auto* members = std::get_if<Members>(&message)) return take(*members);
      if (auto* leave = std::get_if<Leave>(&message)) {
        left_ = true;
        if (worker_) caf::anon_send(worker_, *leave);
      }
      return ok_status();
    });
  }

  void push(std::function<Status()> event) {
    {
      std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    ready_.notify_one();
  }
  std::function<Status()> next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !events_.empty(); });
    auto event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  Status connect_to_master();
  Status take(const Welcome& welcome);
  Status take(const Members& members);
  Status mesh_ready();
  Join join() const;
  void shut_down();

  NodeOptions options_;
  std::uint64_t incarnation_ = std::random_device{}();
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<caf::actor_system_config> config_ = actor_config();
  std::optional<caf::actor_system> system_;
  NetHub hub_;
  std::unique_ptr<Transport> transport_;
  std::uint16_t port_ = 0;
  ProcessId self_ = 0;
  WorkerActor worker_;
  CoordinatorActor master_;
  std::future<void> gone_;
  std::set<ProcessId> connected_, wanted_;
  bool have_members_ = false, told_ready_ = false;
  bool left_ = false;

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<Status()>> events_;
};

Join WorkerNode::join() const {
  Join join;
  join.process = self_;
  join.incarnation = incarnation_;
  join.job = options_.job;
  join.listen_host = options_.listen.host;
  join.listen_port = port_;
  join.cpus = std::max(1u, std::thread::hardware_concurrency());
  join.profile = numeric_profile();
  return join;
}

Status WorkerNode::connect_to_master() {
  Security security =
      options_.secret.empty() ? Security::plaintext() : Security::shared_secret(options_.secret);
  TROUPE_TRY(TransportLimits limits, limits_with(options_.silence));
  TROUPE_TRY(transport_, make_tcp_transport(security, limits, hub_));
  hub_.use(*transport_);
  hub_.handle_inline();
  TROUPE_TRY(Hello words, encode_join(join()));
  TROUPE_TRY(port_, transport_->listen(options_.listen, std::move(words)));
  TROUPE_TRY(hub_.connect(options_.master, join(), 0, kJoinWithin));
  if (options_.child) hub_.allow_silence(0);
  return ok_status();
}

Status WorkerNode::take(const Welcome& welcome) {
  if (system_) return invalid_argument("the master welcomed this process twice");
  if (welcome.process == 0) return invalid_argument("the master gave this process its own number");
  if (welcome.threads > kMostThreads)
    return invalid_argument(
        fmt::format("{} threads for a device, {} are the most", welcome.threads, kMostThreads));
  if (welcome.devices.size() > kMostDevices || welcome.task > kMostTasks)
    return invalid_argument(fmt::format("{} devices for task {}, {} for task {} are the most",
                                        welcome.devices.size(), welcome.task, kMostDevices,
                                        kMostTasks));
  self_ = welcome.process;
  hub_.set_self(self_);
  Ready ready;
  ready.process = self_;
  ready.status = apply(welcome.profile);
  if (!ready.status.ok()) {
    TROUPE_TRY(hub_.send(0, ready));
    return ready.status;
  }
  Cluster cluster;
  cluster.threads = int(welcome.threads);
  cluster.devices = welcome.devices;
  TROUPE_TRY(devices_, make_devices(cluster, welcome.task));
  system_.emplace(*config_);
  auto promise = std::make_shared<std::promise<void>>();
  gone_ = promise->get_future();
  std::shared_ptr<void> alive(promise.get(), [promise](void*) { promise->set_value(); });
  promise.reset();
  master_ = spawn_master_proxy(*system_, hub_, alive);
  WorkerOptions worker;
  worker.process = self_;
  for (auto& device : devices_) {
    worker.devices.push_back(device.get());
    ready.devices.push_back(device->name().text());
  }
  worker.ops = &ops::builtin();
  worker.coordinator = master_;
  worker.hub = &hub_;
  worker.alive = alive;
  worker_ = spawn_worker(*system_, std::move(worker));
  hub_.deliver_to(worker_);
  return hub_.send(0, ready);
}

Status WorkerNode::take(const Members& members) {
  have_members_ = true;
  told_ready_ = false;
  for (const Member& member : members.members) {
    if (member.process == self_) continue;
    bool fresh = wanted_.insert(member.process).second;
    if (!fresh || member.process > self_) continue;  // the higher number connects
    TROUPE_TRY(hub_.connect({member.host, member.port}, join(), member.process, kJoinWithin));
  }
  return mesh_ready();
}

// The second Ready: every member is connected, tensors find their way.
Status WorkerNode::mesh_ready() {
  if (!have_members_ || told_ready_) return ok_status();
  for (ProcessId process : wanted_)
    if (!connected_.contains(process)) return ok_status();
  told_ready_ = true;
  Ready ready;
  ready.process = self_;
  for (auto& device : devices_) ready.devices.push_back(device->name().text());
  return hub_.send(0, ready);
}

void WorkerNode::shut_down() {
  if (worker_) {
    caf::anon_send(worker_, Leave{});
    caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
    worker_ = nullptr;
    master_ = nullptr;
    hub_.deliver_to(WorkerActor{});
  }
  if (transport_) transport_->shutdown();
  if (gone_.valid()) gone_.wait();
  devices_.clear();
  system_.reset();
}

Status WorkerNode::run() {
  TROUPE_TRY(ops::ready());
  Status status = connect_to_master();
  while (status.ok() && !left_) status = next()();
  shut_down();
  return status;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (unsigned char c : bytes) text += fmt::format("{:02x}", c);
  return text;
}

Expected<std::string> unhex(const std::string& text) {
  if (text.size() % 2 != 0)
    return invalid_argument("a secret is written in pairs of hexadecimal digits");
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (error != std::errc{} || end != text.data() + i + 2)
      return invalid_argument("a secret is written in hexadecimal digits");
    bytes.push_back(char(value));
  }
  return bytes;
}

}  // namespace

NumericProfile numeric_profile() {
  NumericProfile profile;
  profile.isa = std::uint32_t(ops::isa_level());
  profile.kernels = fmt::format("{}, compiler {}, glibc {}", ops::libraries(), __VERSION__,
                                gnu_get_libc_version());
  ops::CacheSizes caches = ops::cache_sizes();
  profile.l1 = caches.l1;
  profile.l2 = caches.l2;
  profile.l3 = caches.l3;
  return profile;
}

std::string profile_text(const NumericProfile& profile) {
  return fmt::format("x86-64-v{}, {}, caches {}/{}/{}", profile.isa, profile.kernels, profile.l1,
                     profile.l2, profile.l3);
}

Expected<TransportLimits> limits_with(std::chrono::milliseconds silence) {
  if (silence < kLeastSilence)
    return invalid_argument(fmt::format("a silence of {} ms says nothing: {} ms are the least",
                                        silence.count(), kLeastSilence.count()));
  TransportLimits limits;
  limits.silence = limits.handshake = std::min(silence, kMostSilence);
  return limits;
}

Status run_worker(const NodeOptions& options) { return WorkerNode(options).run(); }

namespace {

// A file that others may read is no secret. Of a pipe or a device there is nothing to say.
Status check_private(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return not_found("cannot open '" + path + "'");
  if (!S_ISREG(info.st_mode) || (info.st_mode & 077) == 0) return ok_status();
  return failed_precondition(
      fmt::format("'{}' is a secret, but its mode {:04o} lets others in; run: chmod 600 '{}'", path,
                  info.st_mode & 07777u, path));
}

}  // namespace

Expected<std::string> read_secret(const std::string& path) {
  if (path.empty()) return std::string{};
  if (Status open_to_all = check_private(path); !open_to_all.ok()) return open_to_all;
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found("cannot open '" + path + "'");
  // Of a longer file only so much that it shows: a device may have no end.
  std::string secret(64 + 2, '\0');
  in.read(secret.data(), std::streamsize(secret.size()));
  secret.resize(std::size_t(in.gcount()));
  if (!secret.empty() && secret.back() == '\n') secret.pop_back();
  if (secret.size() < 16 || secret.size() > 64)
    return invalid_argument(fmt::format("'{}': a secret has 16 to 64 bytes, not {}{}", path,
                                        secret.size(), secret.size() > 64 ? " or more" : ""));
  return secret;
}

int worker_argument(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument.rfind(kWorkerArgument, 0) != 0) continue;
    argument.remove_prefix(std::strlen(kWorkerArgument));
    int descriptor = -1;
    auto [end, error] =
        std::from_chars(argument.data(), argument.data() + argument.size(), descriptor);
    if (error == std::errc{} && end == argument.data() + argument.size()) return descriptor;
  }
  return -1;
}

std::string node_options_text(const NodeOptions& options) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", options.master.text(), options.listen.text(),
                     hex(options.secret), options.job, options.silence.count());
}

Expected<NodeOptions> parse_node_options(const std::string& text) {
  std::istringstream in(text);
  std::string master, listen, secret;
  NodeOptions options;
  std::int64_t silence = 0;
  if (!std::getline(in, master) || !std::getline(in, listen) || !std::getline(in, secret) ||
      !std::getline(in, options.job) || !(in >> silence))
    return invalid_argument("a worker's settings are five lines");
  options.silence = std::chrono::milliseconds(silence);
  TROUPE_TRY(options.master, parse_endpoint(master));
  TROUPE_TRY(options.listen, parse_endpoint(listen));
  TROUPE_TRY(options.secret, unhex(secret));
  return options;
}

int run_inherited_worker(int descriptor) {
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = read(descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, std::size_t(n));
  close(descriptor);
  auto options = parse_node_options(text);
  if (options.ok()) options->child = true;
  Status status = options.ok() ? run_worker(*options) : options.status();
  if (status.ok()) return 0;
  TROUPE_LOG(warning, "worker", status.text());
  return 75;
}

}  // namespace troupe
