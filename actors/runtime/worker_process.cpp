#include "actors/runtime/worker_process.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <caf/send.hpp>
#include <charconv>
#include <cstring>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "actors/net/tcp.hpp"
#include "actors/processes/event_queue.hpp"
#include "actors/processes/gathering.hpp"
#include "actors/processes/membership.hpp"
#include "actors/processes/mesh.hpp"
#include "actors/processes/stopped.hpp"
#include "actors/runtime/net_hub.hpp"
#include "actors/runtime/registered.hpp"
#include "actors/runtime/runtime.hpp"
#include "actors/worker/worker_actor.hpp"
#include "core/log.hpp"
#include "core/number.hpp"
#include "core/processors.hpp"
#include "ops/isa.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kJoinWithin{10};
constexpr std::chrono::milliseconds kMostSilence = std::chrono::hours(24);

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

// Of two limits, of which 0 is none.
std::uint64_t smaller_limit(std::uint64_t a, std::uint64_t b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

// The worker's actors, the hub, and the thread that carries out what Mesh decides: the one that
// calls run(). Events of sockets come to it through one queue.
class WorkerProcess final : public HubOwner {
 public:
  explicit WorkerProcess(WorkerProcessOptions options)
      : options_(std::move(options)), hub_(~0u, *this) {
    words_.incarnation = random_incarnation();
    words_.job = options_.job;
    words_.listen_host = options_.listen.host;
    words_.cpus = std::uint32_t(usable_processors());
    words_.profile = numeric_profile();
    words_.registered = registered();
    hub_.record(trace_);
  }

  Status run();

 private:
  // HubOwner
  Status may_connect(const Join& join) const override { return troupe::may_connect(words_, join); }
  void up(PeerId peer, const Join& join) override {
    events_.push([=, this] { mesh_->up(peer, join, out_); });
  }
  void down(PeerId peer, Status why) override {
    events_.push([=, this] { mesh_->down(peer, why, out_); });
  }
  void message(ProcessId, WireMessage message) override {
    if (auto* order = std::get_if<RecordTrace>(&message)) return record(order->on);
    events_.push([this, message = std::move(message)] {
      if (auto* welcome = std::get_if<Welcome>(&message)) mesh_->welcome(*welcome, out_);
      if (auto* members = std::get_if<Members>(&message)) mesh_->members(*members, out_);
      if (std::holds_alternative<Leave>(message)) mesh_->leave(out_);
    });
  }

  static std::uint64_t random_incarnation() {
    std::random_device device;
    return (std::uint64_t{device()} << 32 | device()) | 1;  // 0 stands for any
  }
  void record(bool on);
  void tell_recorded();
  Status begin();
  void carry_out(Mesh::Output& output);
  Expected<std::vector<std::string>> host(const Welcome& welcome);
  Join words() const;
  void shut_down();

  WorkerProcessOptions options_;
  Join words_;  // of this process, but for its number
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<caf::actor_system_config> config_ = actor_config();
  std::optional<caf::actor_system> system_;
  EventQueue events_;
  const std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  NetHub hub_;
  std::unique_ptr<Transport> transport_;
  WorkerActor worker_;
  CoordinatorActor master_;
  std::future<void> gone_;

  std::optional<Mesh> mesh_;
  Mesh::Outputs out_;
  std::optional<Status> ended_;
};

// At once, on the transport's thread: what the master sends next belongs to it already.
void WorkerProcess::record(bool on) {
  if (on) trace_->collect();
  trace_->enable(on);
  if (!on) events_.push([this] { tell_recorded(); });
}

void WorkerProcess::tell_recorded() {
  for (const TraceSpans& message : in_messages(trace_->collect()))
    // A master that is not there any more is lost, of which we hear by itself.
    if (Status status = hub_.send(0, message); !status.ok())
      TROUPE_LOG(debug, "worker", status.text());
}

Join WorkerProcess::words() const {
  Join words = words_;
  words.process = mesh_ ? mesh_->self() : 0;
  return words;
}

Status WorkerProcess::begin() {
  Security security =
      options_.secret.empty() ? Security::plaintext() : Security::shared_secret(options_.secret);
  TROUPE_TRY(TransportLimits limits, limits_with(options_.silence));
  TROUPE_TRY(transport_, make_tcp_transport(security, limits, hub_));
  hub_.use(*transport_);
  hub_.handle_inline();
  TROUPE_TRY(Hello hello, encode_join(words()));
  TROUPE_TRY(words_.listen_port, transport_->listen(options_.listen, std::move(hello)));
  TROUPE_TRY(PeerId master, hub_.connect(options_.master, words(), 0, 0, kJoinWithin));
  mesh_.emplace(words_, master);
  if (options_.parent != 0)
    hub_.allow_silence(0, [master = options_.parent] { return is_stopped(master); });
  return ok_status();
}

void WorkerProcess::carry_out(Mesh::Output& output) {
  if (auto* connect = std::get_if<Mesh::Connect>(&output)) {
    const Member& to = connect->to;
    mesh_->connecting(
        to.process,
        hub_.connect({to.host, to.port}, words(), to.process, to.incarnation, kJoinWithin), out_);
  } else if (auto* admit = std::get_if<Mesh::Admit>(&output)) {
    hub_.admit(admit->peer, admit->process);
  } else if (auto* close = std::get_if<Mesh::Close>(&output)) {
    hub_.close_peer(close->peer, std::move(close->why));
  } else if (auto* host = std::get_if<Mesh::Host>(&output)) {
    mesh_->hosting(this->host(host->welcome), out_);
  } else if (auto* report = std::get_if<Mesh::Report>(&output)) {
    // A master that is not connected any more is lost, of which we hear by itself.
    Status status =
        std::visit([&](const auto& message) { return hub_.send(0, message); }, report->message);
    if (!status.ok()) TROUPE_LOG(debug, "worker", status.text());
  } else {
    ended_ = std::move(std::get<Mesh::End>(output).status);
  }
}

// Devices and actors as the master asks for them. What came about stays until shut_down().
Expected<std::vector<std::string>> WorkerProcess::host(const Welcome& welcome) {
  TROUPE_TRY(apply(welcome.profile));
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
  worker.process = welcome.process;
  std::vector<std::string> names;
  for (auto& device : devices_) {
    worker.devices.push_back(device.get());
    names.push_back(device->name().text());
  }
  worker.ops = &ops::builtin();
  worker.coordinator = master_;
  worker.hub = &hub_;
  worker.trace = trace_;
  worker.step_memory = smaller_limit(options_.step_memory, welcome.step_memory);
  worker.alive = alive;
  worker_ = spawn_worker(*system_, std::move(worker));
  hub_.deliver_to(worker_);
  return names;
}

void WorkerProcess::shut_down() {
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

Status WorkerProcess::run() {
  TROUPE_TRY(ops::ready());
  Status status = begin();
  while (status.ok() && !ended_) {
    events_.take(kNever)();
    for (; !out_.empty(); out_.pop_front()) carry_out(out_.front());
  }
  shut_down();
  return ended_ ? *ended_ : status;
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

Status run_worker(const WorkerProcessOptions& options) { return WorkerProcess(options).run(); }

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

std::string worker_settings_text(const WorkerProcessOptions& options) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", options.master.text(), options.listen.text(),
                     hex(options.secret), options.job, options.silence.count(), options.parent);
}

Expected<WorkerProcessOptions> parse_worker_settings(const std::string& text) {
  std::array<std::string, 6> lines;
  std::size_t at = 0;
  for (std::string& line : lines) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) return invalid_argument("a worker's settings are six lines");
    line = text.substr(at, end - at);
    at = end + 1;
  }
  const auto silence = parse_number<std::int64_t>(lines[4]);
  const auto parent = parse_number<std::int64_t>(lines[5]);
  if (!silence || !parent)
    return invalid_argument("a worker's settings end with milliseconds and its master's process");
  WorkerProcessOptions options;
  options.job = lines[3];
  options.silence = std::chrono::milliseconds(*silence);
  options.parent = pid_t(*parent);
  TROUPE_TRY(options.master, parse_endpoint(lines[0]));
  TROUPE_TRY(options.listen, parse_endpoint(lines[1]));
  TROUPE_TRY(options.secret, unhex(lines[2]));
  return options;
}

int run_inherited_worker(int descriptor) {
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = ::read(descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, std::size_t(n));
  ::close(descriptor);
  auto options = parse_worker_settings(text);
  Status status = options.ok() ? run_worker(*options) : options.status();
  if (status.ok()) return 0;
  TROUPE_LOG(warning, "worker", status.text());
  return status.code() == Code::unavailable ? 75 : 1;
}

void become_worker_if_started_as_one() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<char*> argv;
  for (std::size_t at = 0; at < words.size(); at += std::strlen(&words[at]) + 1)
    argv.push_back(&words[at]);
  const int descriptor = worker_argument(int(argv.size()), argv.data());
  if (descriptor < 0) return;
  const int code = run_inherited_worker(descriptor);
  // Whatever the program has begun, threads or objects, is not there to be ended in order.
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace troupe
