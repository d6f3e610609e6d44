#include "actors/runtime/worker_process.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>

#include "actors/runtime/worker_shell.hpp"
#include "core/log.hpp"
#include "core/number.hpp"
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

Status run_worker(const WorkerProcessOptions& options) {
  TROUPE_TRY(ops::ready());
  const std::unique_ptr<Platform> machine = this_machine();
  WorkerShell shell(options, ops::builtin(), *machine);
  Status status = shell.begin();
  while (status.ok() && !shell.ended()) shell.handle(shell.events().take(kNever));
  shell.end();
  shell.wait();
  return shell.ended() ? *shell.ended() : status;
}

int worker_exit_code(const Status& status) {
  if (status.ok()) return 0;
  return status.code() == Code::unavailable ? kTryAgain : 1;
}

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
  if (!status.ok()) TROUPE_LOG(warning, "worker", status.text());
  return worker_exit_code(status);
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
