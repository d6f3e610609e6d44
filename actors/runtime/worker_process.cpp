#include "actors/runtime/worker_process.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>

#include "actors/cluster.hpp"
#include "actors/net/socket.hpp"
#include "actors/processes/orphan_wait.hpp"
#include "actors/runtime/runtime.hpp"
#include "actors/runtime/worker_shell.hpp"
#include "core/log.hpp"
#include "core/number.hpp"
#include "core/stop_signal.hpp"
#include "core/threads.hpp"
#include "devices/cuda/settings.hpp"
#include "ops/isa.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kMostSilence = std::chrono::hours(24);

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
  const auto tf32 = cuda::allows_tf32(), measures = cuda::measures_choices();
  if (tf32.ok() && *tf32) profile.kernels += ", TF32 on GPUs";
  if (measures.ok() && *measures) profile.kernels += ", measured choices on GPUs";
  ops::CacheSizes caches = ops::cache_sizes();
  profile.l1 = caches.l1;
  profile.l2 = caches.l2;
  profile.l3 = caches.l3;
  return profile;
}

std::string profile_text(const NumericProfile& profile) {
  return fmt::format("x86-64-{}, {}, caches {}/{}/{}", ops::isa_name(int(profile.isa)),
                     profile.kernels, profile.l1, profile.l2, profile.l3);
}

Expected<TransportLimits> limits_with(std::chrono::milliseconds silence) {
  if (silence < kLeastSilence)
    return invalid_argument(fmt::format("a silence of {} ms says nothing: {} ms are the least",
                                        silence.count(), kLeastSilence.count()));
  TransportLimits limits;
  limits.silence = limits.handshake = std::min(silence, kMostSilence);
  return limits;
}

Expected<std::shared_ptr<Transport>> open_transport(Platform& platform, const std::string& secret,
                                                    std::chrono::milliseconds silence,
                                                    NetHub& hub) {
  const Security security =
      secret.empty() ? Security::plaintext() : Security::shared_secret(secret);
  TROUPE_TRY(TransportLimits limits, limits_with(silence));
  TROUPE_TRY(auto transport, platform.make_transport(security, limits, hub));
  hub.use(*transport);
  if (platform.handle_inline()) hub.handle_inline();
  return transport;
}

namespace {

// While a worker waits for its master.
constexpr std::chrono::milliseconds kLookForMaster{100};
constexpr int kLooksBetweenTries = 5;

void look(OrphanWait& wait, bool connected = false) {
  wait.look(steady_now(), connected);
  if (const std::string news = wait.news(); !news.empty()) TROUPE_LOG(warning, "worker", news);
}

bool says_stop(const OrphanOptions& orphan) { return orphan.stop && orphan.stop(); }

// Runs the worker once, until it ends or has waited too long.
Status live_as_worker(const WorkerProcessOptions& options, OrphanWait& wait,
                      const OrphanOptions& orphan) {
  WorkerProcessOptions here = options;
  if (here.listen.host.empty()) {
    TROUPE_TRY(here.listen, listen_towards(here.master));
  }
  const std::unique_ptr<Platform> machine = this_machine();
  WorkerShell shell(std::move(here), ops::builtin, *machine);
  Status status = shell.begin();
  while (status.ok() && !shell.ended()) {
    if (shell.process() != 0 && !wait.is_joined()) wait.joined();
    look(wait, shell.connected());
    if (wait.over()) status = wait.gave_up();
    if (!wait.is_joined() && says_stop(orphan)) status = cancelled("stopped while it waited");
    if (!status.ok()) break;
    const bool patient = wait.is_joined() || orphan.limit.count() == 0;
    shell.handle(shell.events().take(patient ? kNever : steady_now() + kLookForMaster));
  }
  if (shell.process() != 0) wait.joined();
  shell.end();
  shell.wait();
  return shell.ended() ? *shell.ended() : status;
}

// The arguments that this process was started with.
std::vector<std::string> own_arguments() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::string> words;
  for (std::size_t at = 0; at < all.size(); at += words.back().size() + 1)
    words.emplace_back(&all[at]);
  return words;
}

// Returns only on failure.
Status begin_anew(const std::string& input) {
  int ends[2];
  if (!input.empty() && pipe(ends) == 0) {
    (void)!::write(ends[1], input.data(), input.size());  // a secret: it fits into the pipe
    ::close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    if (ends[0] != STDIN_FILENO) ::close(ends[0]);
  }
  std::vector<std::string> words = own_arguments();
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv("/proc/self/exe", argv.data());
  return unavailable(fmt::format("the master is lost, and this worker cannot begin anew: {}",
                                 std::strerror(errno)));
}

}  // namespace

Status run_worker(const WorkerProcessOptions& options) { return run_waiting_worker(options, {}); }

Status run_waiting_worker(const WorkerProcessOptions& options, const OrphanOptions& orphan) {
  TROUPE_TRY(ops::ready());
  TROUPE_TRY(threads_can_start(threads_of_actors()));
  OrphanWait wait(options.master.text(), orphan.limit);
  for (;;) {
    Status how = unless_no_thread([&] { return live_as_worker(options, wait, orphan); });
    if (wait.over()) return wait.gave_up();
    switch (wait.ended(how)) {
      case OrphanWait::Next::end:
        return how;
      case OrphanWait::Next::anew:
        // Which would not know that it was asked to end.
        if (says_stop(orphan)) return cancelled("stopped when its master was lost");
        TROUPE_LOG(warning, "worker",
                   fmt::format("{}: waiting at most {} s for a master at {}", how.message(),
                               orphan.limit.count(), options.master.text()));
        return begin_anew(orphan.input);
      case OrphanWait::Next::retry:
        for (int i = 0; i < kLooksBetweenTries && !wait.over(); ++i) {
          poll(nullptr, 0, int(kLookForMaster.count()));
          look(wait);
        }
        if (wait.over()) return wait.gave_up();
        if (says_stop(orphan)) return cancelled("stopped while it waited");
    }
  }
}

Expected<Endpoint> listen_towards(const Endpoint& to) {
  TROUPE_TRY(const std::vector<Address> all, resolve(to));
  int error = ENOENT;
  for (const Address& each : all) {
    const Descriptor probe(::socket(each.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    // connect() only selects the route. The host includes the zone of a link-local address, which
    // Address::host() leaves out.
    char host[NI_MAXHOST];
    if (probe && ::connect(probe.get(), each.get(), each.size) == 0)
      if (const Address own = local_address(probe.get());
          getnameinfo(own.get(), own.size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0)
        return Endpoint{host, 0};
    error = errno;
  }
  return unavailable(fmt::format("no way to {}: {}", to.text(), std::strerror(error)));
}

namespace {

Expected<WorkerProcessOptions> worker_of(const Cluster& cluster) {
  WorkerProcessOptions options;
  TROUPE_TRY(cluster.check());
  TROUPE_TRY(options.master, parse_endpoint(cluster.join));
  options.secret = cluster.secret;
  options.silence = cluster.silence;
  options.step_memory = cluster.step_memory;
  options.announce = cluster.announce;
  // The host's own name may be a loopback address here, but not elsewhere, and of IPv4 or of IPv6.
  options.listen = {};
  if (!cluster.announce.empty()) options.listen.host = "::";
  return options;
}

// Unless the program has a handler of its own.
void hear_stop_signals() {
  for (const int number : {SIGTERM, SIGINT})
    if (const auto old = std::signal(number, on_stop_signal); old != SIG_DFL)
      std::signal(number, old);
}

}  // namespace

// A launcher asks all processes of a job to end. The master does so in order, and needs its workers
// for the last checkpoint.
Status become_worker_of(const Cluster& cluster) {
  TROUPE_TRY(WorkerProcessOptions options, worker_of(cluster));
  hear_stop_signals();
  const OrphanOptions orphan = {cluster.orphan_timeout, [&cluster] {
                                  return stop_signal() != 0 || (cluster.stop && cluster.stop());
                                }};
  const Status status = run_waiting_worker(options, orphan);
  if (status.code() == Code::cancelled && says_stop(orphan)) return status;
  if (!status.ok()) TROUPE_LOG(error, "worker", status.text());
  std::fflush(nullptr);
  _exit(worker_exit_code(status));
}

int worker_exit_code(const Status& status) {
  if (status.ok()) return 0;
  return status.code() == Code::unavailable ? kTryAgain : 1;
}

namespace {

Expected<std::string> whole_secret(const std::string& path, std::string secret) {
  if (!secret.empty() && secret.back() == '\n') secret.pop_back();
  if (secret.size() < 16 || secret.size() > 64)
    return invalid_argument(fmt::format("'{}': a secret has 16 to 64 bytes, not {}{}", path,
                                        secret.size(), secret.size() > 64 ? " or more" : ""));
  return secret;
}

// Standard input may be a socket, which cannot be opened by name.
Expected<std::string> secret_of_input() {
  std::string secret;
  char buffer[66];
  ssize_t n = 0;
  while (secret.size() < sizeof buffer && (n = ::read(STDIN_FILENO, buffer, sizeof buffer)) > 0)
    secret.append(buffer, std::size_t(n));
  return whole_secret("standard input", std::move(secret));
}

// Refuses a file that others may read. Pipes and devices are not checked.
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
  if (path == "-") return secret_of_input();
  if (Status open_to_all = check_private(path); !open_to_all.ok()) return open_to_all;
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found("cannot open '" + path + "'");
  // Reads just enough to detect a file that is too long: a device may be endless.
  std::string secret(64 + 2, '\0');
  in.read(secret.data(), std::streamsize(secret.size()));
  secret.resize(std::size_t(in.gcount()));
  return whole_secret(path, std::move(secret));
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
  if (!status.ok()) TROUPE_LOG(warning, "worker", status.text());
  return worker_exit_code(status);
}

void become_worker_if_started_as_one() {
  std::vector<std::string> words = own_arguments();
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const int descriptor = worker_argument(int(argv.size()), argv.data());
  if (descriptor < 0) return;
  const int code = run_inherited_worker(descriptor);
  // Without destructors: the program's threads and objects cannot be ended in order.
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace troupe
