#include "actors/processes/children.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "actors/processes/farewell.hpp"
#include "actors/processes/proc.hpp"
#include "actors/processes/stopped.hpp"
#include "core/accumulating_clock.hpp"
#include "core/descriptor.hpp"
#include "core/no_signals.hpp"

extern "C" {  // which the header forgets in glibc 2.36
#include <sys/pidfd.h>
}

namespace troupe {
namespace {

constexpr std::size_t kLastWords = 400;  // bytes kept of what a child printed
// What a child that was killed has to end. Only what its kernel does not let go takes longer.
constexpr std::chrono::seconds kGrace{5};
constexpr std::size_t kMostOfAPipe = 1u << 20;  // what a pipe can hold, whoever made it larger
// How often wait() looks for children that were stopped. Their ends it is told.
constexpr std::chrono::milliseconds kLookEvery{20};

struct Pipe {
  Descriptor in, out;  // read from `in` what was written to `out`
};

Status no_room(const std::string& doing) {
  return resource_exhausted(fmt::format("{}: {}", doing, std::strerror(errno)));
}

// Above the descriptors that a child is given, so that giving one does not close another.
Expected<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return no_room("pipe");
  Descriptor low_in(ends[0]), low_out(ends[1]);
  Pipe pipe{Descriptor(fcntl(low_in.get(), F_DUPFD_CLOEXEC, Children::kInput + 1)),
            Descriptor(fcntl(low_out.get(), F_DUPFD_CLOEXEC, Children::kInput + 1))};
  if (pipe.in.get() < 0 || pipe.out.get() < 0) return no_room("pipe");
  return pipe;
}

void set_blocking(const Descriptor& descriptor) {
  fcntl(descriptor.get(), F_SETFL, fcntl(descriptor.get(), F_GETFL) & ~O_NONBLOCK);
}

Status cannot_run(const std::string& program, int error) {
  std::string text = fmt::format("cannot run '{}': {}", program, std::strerror(error));
  if (error == ENOENT) return not_found(std::move(text));
  if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE)
    return resource_exhausted(std::move(text));
  return failed_precondition(std::move(text));
}

// The signals of this thread's mask, those that ask a job to end or to do something, and that of a
// child whose words nobody hears any more: it may still have something to do.
sigset_t blocked_in_children() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE})
    sigaddset(&mask, number);
  return mask;
}

Expected<pid_t> spawn(const std::string& program, const std::vector<std::string>& arguments,
                      const Descriptor& input, const Descriptor& output) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input.get(), Children::kInput);
  posix_spawn_file_actions_adddup2(&files, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const sigset_t blocked = blocked_in_children();
  posix_spawnattr_setsigmask(&attributes, &blocked);
  pid_t pid = 0;
  int error = posix_spawn(&pid, program.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return cannot_run(program, error);
  return pid;
}

// On one line, and fit for an error message whatever was printed.
std::string as_words(std::string_view printed) {
  auto space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!printed.empty() && space(printed.back())) printed.remove_suffix(1);
  if (printed.size() >= kLastWords) {
    printed.remove_prefix(printed.size() - kLastWords);
    if (std::size_t line = printed.find('\n'); line != printed.npos) printed.remove_prefix(line);
  }
  while (!printed.empty() && space(printed.front())) printed.remove_prefix(1);
  std::string words;
  for (char c : printed) {
    if (c == '\n')
      words += " | ";
    else
      words += c == '\t' ? ' ' : c < ' ' || c > '~' ? '?' : c;
  }
  return words;
}

}  // namespace

struct Children::Child {
  pid_t pid = 0;
  Descriptor handle;  // a pidfd, which names no other process later
  Descriptor output;  // the thread's
  std::string printed;
  std::optional<ChildEnd> end;

  void signal(int number) const { (void)pidfd_send_signal(handle.get(), number, nullptr, 0); }
};

std::string ChildEnd::text() const {
  std::string how = signal != 0 ? fmt::format("was ended by signal {} ({})", signal,
                                              std::string(strsignal(signal)))
                    : code >= 0 ? fmt::format("ended with exit code {}", code)
                                : "ended";
  return last_words.empty() ? how : fmt::format("{}, having said '{}'", how, last_words);
}

Children::Children(Ended ended, int pass_on_to)
    : ended_(std::move(ended)),
      pass_on_to_(pass_on_to),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Children::~Children() {
  kill_all();
  (void)wait(std::chrono::milliseconds(0));
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  if (wake_ >= 0) ::close(wake_);
}

Expected<pid_t> Children::start(const std::string& program,
                                const std::vector<std::string>& arguments, std::string_view input) {
  if (wake_ < 0) return resource_exhausted("no descriptor is left to watch children with");
  TROUPE_TRY(Pipe to_child, make_pipe());
  TROUPE_TRY(Pipe from_child, make_pipe());
  // Before the child is there: one that ends without reading would break the pipe.
  if (::write(to_child.out.get(), input.data(), input.size()) != ssize_t(input.size()))
    return invalid_argument(fmt::format("{} bytes of input for a child", input.size()));
  to_child.out.reset();
  set_blocking(to_child.in);
  set_blocking(from_child.out);
  TROUPE_TRY(pid_t pid, spawn(program, arguments, to_child.in, from_child.out));
  auto child = std::make_unique<Child>();
  child->pid = pid;
  child->handle = Descriptor(pidfd_open(pid, 0));
  child->output = std::move(from_child.in);
  if (child->handle.get() < 0) {
    Status status = no_room("a descriptor for a child");
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return status;
  }
  std::lock_guard lock(mutex_);
  children_.push_back(std::move(child));
  if (!thread_.joinable()) {
    const NoSignals none;
    thread_ = std::thread([this] { watch(); });
  }
  wake();
  return pid;
}

void Children::kill(pid_t child) {
  std::lock_guard lock(mutex_);
  if (const Child* found = find(child); found != nullptr && !found->end) found->signal(SIGKILL);
}

void Children::kill_all() {
  std::lock_guard lock(mutex_);
  for (const auto& child : children_)
    if (!child->end) child->signal(SIGKILL);
}

std::vector<pid_t> Children::wait(std::chrono::milliseconds patience) {
  AccumulatingClock clock;
  Farewell farewell(clock.reading(), patience, kGrace);
  std::unique_lock lock(mutex_);
  for (;;) {
    clock.look(std::chrono::steady_clock::now().time_since_epoch());
    std::vector<pid_t> left;
    bool waits = false;
    for (const auto& child : children_) {
      if (child->end) continue;
      left.push_back(child->pid);
      const auto deed = farewell.look(child->pid, is_stopped(child->pid), clock.reading());
      waits |= deed != Farewell::Deed::give_up;
      if (deed != Farewell::Deed::kill) continue;
      child->signal(SIGKILL);
      hurry_ = true;
      wake();
    }
    if (!waits) return left;
    changed_.wait_for(lock, kLookEvery);
  }
}

std::string Children::last_words(pid_t child) const {
  std::lock_guard lock(mutex_);
  const Child* found = find(child);
  return found == nullptr ? std::string{} : as_words(found->printed);
}

std::optional<ChildEnd> Children::end_of(pid_t child) const {
  std::lock_guard lock(mutex_);
  const Child* found = find(child);
  return found == nullptr ? std::nullopt : found->end;
}

const Children::Child* Children::find(pid_t child) const {
  // The latest: a number may be used again once its process has ended.
  auto it = std::find_if(children_.rbegin(), children_.rend(),
                         [&](const auto& c) { return c->pid == child; });
  return it == children_.rend() ? nullptr : it->get();
}

void Children::wake() const {
  if (wake_ >= 0) (void)eventfd_write(wake_, 1);
}

// The thread.

void Children::watch() {
  std::vector<Child*> alive;
  std::vector<pollfd> waits;
  for (;;) {
    alive.clear();
    waits.assign(1, {wake_, POLLIN, 0});
    {
      std::lock_guard lock(mutex_);
      if (stop_) return;
      for (const auto& child : children_)
        if (!child->end) alive.push_back(child.get());
    }
    for (const Child* child : alive) {
      waits.push_back({child->handle.get(), POLLIN, 0});
      waits.push_back({child->output.get(), POLLIN, 0});  // -1 is passed over
    }
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    eventfd_t count;
    (void)eventfd_read(wake_, &count);
    for (std::size_t i = 0; i < alive.size(); ++i) {
      if (waits[2 * i + 1].revents != 0)
        bury(*alive[i]);
      else if (waits[2 * i + 2].revents != 0)
        listen(*alive[i]);
    }
  }
}

// Waits for whoever reads there, but not while children are to end: nobody may ever read. A pipe
// that can be written to has room for PIPE_BUF bytes.
void Children::pass_on(std::string_view words) {
  if (pass_on_to_ < 0) return;
  while (!words.empty()) {
    pollfd room[] = {{pass_on_to_, POLLOUT, 0}, {wake_, POLLIN, 0}};
    if (::poll(room, 2, hurry_ ? 0 : -1) < 0 && errno != EINTR) return;
    if ((room[0].revents & POLLOUT) != 0) {
      const ssize_t n =
          ::write(pass_on_to_, words.data(), std::min<std::size_t>(words.size(), PIPE_BUF));
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return;
      words.remove_prefix(std::size_t(n));
    } else if (hurry_ || (room[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
      return;  // nobody hears it
    } else {
      eventfd_t count;
      (void)eventfd_read(wake_, &count);
    }
  }
}

// One piece of what it prints.
void Children::listen(Child& child) {
  char piece[4096];
  ssize_t n = ::read(child.output.get(), piece, sizeof piece);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return child.output.reset();
  std::string_view words(piece, std::size_t(n));
  pass_on(words);
  std::lock_guard lock(mutex_);
  child.printed += words;
  if (child.printed.size() > 2 * kLastWords)
    child.printed.erase(0, child.printed.size() - 2 * kLastWords);
}

void Children::bury(Child& child) {
  // All that it wrote is in the pipe by now; what a process that it left behind adds is not waited
  // for.
  for (std::size_t heard = 0; child.output.get() >= 0 && heard < kMostOfAPipe; heard += 4096) {
    pollfd more{child.output.get(), POLLIN, 0};
    if (::poll(&more, 1, 0) <= 0) break;
    listen(child);
  }
  child.output.reset();
  ChildEnd end = wait_for_end(P_PID, id_t(child.pid));
  end.last_words = last_words(child.pid);
  if (ended_) ended_(child.pid, end);
  std::lock_guard lock(mutex_);
  child.end = std::move(end);
  changed_.notify_all();
}

}  // namespace troupe
