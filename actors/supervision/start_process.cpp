#include "actors/supervision/start_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

namespace troupe {
namespace {

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Which a command of ours ignores for itself. Looked at before main(), so before that.
struct OwnSignal {
  int number;
  bool ignored_before = is_ignored(number);
};
const OwnSignal kOurs[] = {{SIGPIPE}, {SIGXFSZ}};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

// Those of this process, but for the ones that are given.
std::vector<std::string> with(const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> all;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view variable = *each;
    bool given = false;
    for (const auto& [name, value] : more)
      given |= variable.starts_with(name) && variable.substr(name.size()).starts_with('=');
    if (!given) all.emplace_back(variable);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

// `input`: a descriptor; negative: none.
Expected<pid_t> start_with_input(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, int input,
    const StartOptions& options) {
  // Between fork and exec nothing may be allocated: other threads may hold the allocator's lock.
  const std::vector<std::string> variables = with(environment);
  const std::vector<char*> argv = pointers(command), envp = pointers(variables);
  int failed[2];  // the child's errno, or its end at exec
  if (pipe2(failed, O_CLOEXEC) != 0)
    return resource_exhausted(fmt::format("no pipe: {}", std::strerror(errno)));
  const pid_t here = getpid();
  sigset_t none;
  sigemptyset(&none);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != here) _exit(1);
    if (options.own_group) setpgid(0, 0);
    if (input >= 0 && dup2(input, STDIN_FILENO) < 0) _exit(1);
    for (const OwnSignal& each : kOurs)
      if (!each.ignored_before) signal(each.number, SIG_DFL);
    if (options.no_hangup) signal(SIGHUP, SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvpe(argv[0], argv.data(), envp.data());
    const int error = errno;
    (void)!::write(failed[1], &error, sizeof error);
    _exit(127);
  }
  int error = pid < 0 ? errno : 0;
  close(failed[1]);
  if (pid > 0) {
    ssize_t n = 0;
    do n = ::read(failed[0], &error, sizeof error);
    while (n < 0 && errno == EINTR);
    if (n != sizeof error) error = 0;
  }
  close(failed[0]);
  if (error == 0) return pid;
  if (pid > 0) (void)waitpid(pid, nullptr, 0);
  std::string text = fmt::format("cannot run '{}': {}", command[0], std::strerror(error));
  if (error == ENOENT) return not_found(std::move(text));
  if (error == EAGAIN || error == ENOMEM) return resource_exhausted(std::move(text));
  return failed_precondition(std::move(text));
}

}  // namespace

Expected<pid_t> start_process(const std::vector<std::string>& command,
                              const std::vector<std::pair<std::string, std::string>>& environment,
                              const StartOptions& options) {
  const int input = options.input.empty() ? -1 : open(options.input.c_str(), O_RDONLY | O_CLOEXEC);
  if (!options.input.empty() && input < 0)
    return failed_precondition(
        fmt::format("cannot open '{}': {}", options.input, std::strerror(errno)));
  const auto pid = start_with_input(command, environment, input, options);
  if (input >= 0) close(input);
  return pid;
}

}  // namespace troupe
