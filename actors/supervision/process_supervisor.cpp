#include "actors/supervision/process_supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include "actors/processes/proc.hpp"
#include "actors/supervision/start_process.hpp"
#include "core/accumulating_clock.hpp"
#include "core/hash.hpp"

namespace troupe {
namespace {

// While something is due the clock is looked at as often: a process that was stopped has not
// waited.
constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::chrono::milliseconds kLookForOrphans{20};
constexpr std::chrono::seconds kKernel{5};    // what was killed has to be gone by then
constexpr const char* kLife = "TROUPE_LIFE";  // the variable by which orphans tell whose they are
constexpr int kHeard[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

std::set<pid_t> children_of_this() {
  const auto all = children_of(getpid());
  return {all.begin(), all.end()};
}

std::vector<ChildSpec> specs_of(const std::vector<ProcessSpec>& processes) {
  std::vector<ChildSpec> specs;
  for (const ProcessSpec& process : processes) specs.push_back(process.child);
  return specs;
}

}  // namespace

ChildExit ProcessSpec::meaning_of(const ChildEnd& end) const {
  return exit ? exit(end) : ChildExit{end.signal == 0 && end.code == 0, end.text()};
}

// The current incarnation of a child.
struct ProcessSupervisor::Process {
  std::uint64_t incarnation = 0;
  std::string life;               // names it among the incarnations of all supervisors
  pid_t pid = -1;                 // it lives
  std::optional<ChildExit> exit;  // it has ended, and left `orphans`
  std::set<pid_t> orphans;
  Instant orphans_until{};
  bool missed_signal = false;  // it may not have got one that the terminal sent
};

Expected<std::unique_ptr<ProcessSupervisor>> ProcessSupervisor::make(Options options) {
  for (const ProcessSpec& process : options.children)
    if (process.command.empty())
      return invalid_argument(fmt::format("child '{}' has no command", process.child.id));
  TROUPE_TRY(options.spec.check(specs_of(options.children)));
  return std::unique_ptr<ProcessSupervisor>(new ProcessSupervisor(std::move(options)));
}

ProcessSupervisor::ProcessSupervisor(Options options)
    : options_(std::move(options)),
      machine_(options_.spec, specs_of(options_.children),
               mix64(std::uint64_t(getpid()) ^
                     std::uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()))),
      processes_(options_.children.size()) {}

ProcessSupervisor::~ProcessSupervisor() {
  if (signals_ >= 0) close(signals_);
}

// Signals come through a descriptor, those that this process ignores aside.
void ProcessSupervisor::listen() {
  struct sigaction action {};
  sigset_t heard;
  sigemptyset(&heard);
  for (int number : kHeard)
    if (number == SIGCHLD ||
        (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN))
      sigaddset(&heard, number);
  std::signal(SIGCHLD, SIG_DFL);  // ignored, it would take the ends of children from us
  std::signal(SIGPIPE, SIG_IGN);  // whoever read what we say may go
  sigprocmask(SIG_BLOCK, &heard, nullptr);
  signals_ = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
}

Status ProcessSupervisor::run() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return failed_precondition(fmt::format("cannot adopt processes: {}", std::strerror(errno)));
  not_ours_ = children_of_this();
  listen();
  if (signals_ < 0)
    return resource_exhausted(fmt::format("no descriptor for signals: {}", std::strerror(errno)));
  AccumulatingClock clock;
  const auto look = [&](bool waited) {
    const Instant moment = std::chrono::steady_clock::now().time_since_epoch();
    waited ? clock.look(moment) : clock.look(moment, kNever);
    now_ = clock.reading();
  };
  look(true);
  machine_.begin(now_, out_);
  while (!over_) {
    if (!out_.empty()) {
      const Supervision::Output output = out_.front();
      out_.pop_front();
      carry_out(output);
      continue;
    }
    const bool leaving = std::any_of(processes_.begin(), processes_.end(),
                                     [](const Process& p) { return p.exit.has_value(); });
    std::chrono::milliseconds patience{-1};
    if (const Instant next = machine_.next_wakeup(); next != kNever)
      patience =
          std::min(kLookEvery,
                   std::chrono::ceil<std::chrono::milliseconds>(std::max(Instant(0), next - now_)));
    if (leaving) patience = kLookForOrphans;
    if (options_.looked && (patience.count() < 0 || patience > options_.look_every))
      patience = options_.look_every;
    // While nothing is due nobody looks, and all that passes is the children's life.
    const bool waits = leaving || machine_.next_wakeup() != kNever;
    pollfd signals{signals_, POLLIN, 0};
    (void)poll(&signals, 1, int(patience.count()));
    look(waits);
    take_signals();
    reap();
    look_after_orphans();
    machine_.tick(now_, out_);
    if (options_.looked) options_.looked();
  }
  return *over_;
}

// ------------------------------------------------------------------ what the machine wants

void ProcessSupervisor::carry_out(const Supervision::Output& output) {
  if (const auto* order = std::get_if<Supervision::Start>(&output)) {
    start(*order);
  } else if (const auto* order = std::get_if<Supervision::Stop>(&output)) {
    ask(index_of(order->child), order->incarnation);
  } else if (const auto* order = std::get_if<Supervision::Kill>(&output)) {
    kill_now(index_of(order->child), order->incarnation);
  } else {
    over_ = std::get<Supervision::Over>(output).why;
  }
}

void ProcessSupervisor::start(const Supervision::Start& order) {
  const std::size_t k = index_of(order.child);
  Process& process = processes_[k];
  process = {};
  process.incarnation = order.incarnation;
  take_signals();
  if (machine_.ending())
    return machine_.ended(order.child, order.incarnation, {true, "was not started"}, now_, out_);
  process.life =
      fmt::format("{}.{}/{}/{}", getpid(), start_of(getpid()), order.child, order.incarnation);
  auto environment = options_.children[k].environment;
  environment.emplace_back(kLife, process.life);
  // A shell whose terminal is closed tells the whole group. The child hears of it by SIGTERM, and
  // in its turn.
  const auto pid = start_process(options_.children[k].command, environment,
                                 {.input = options_.children[k].input,
                                  .own_group = options_.children[k].own_group,
                                  .no_hangup = true});
  // A signal to the whole group that came before the fork is not the child's.
  pollfd more{signals_, POLLIN, 0};
  process.missed_signal = poll(&more, 1, 0) > 0;
  if (!pid.ok()) {
    if (options_.told)
      options_.told({.kind = Event::Kind::not_started,
                     .child = order.child,
                     .incarnation = order.incarnation,
                     .why = pid.status(),
                     .at = now_});
    return report(k, order.incarnation, {false, pid.status().message()});
  }
  process.pid = *pid;
  if (options_.told)
    options_.told({.kind = Event::Kind::started,
                   .child = order.child,
                   .incarnation = order.incarnation,
                   .pid = *pid,
                   .at = now_});
  machine_.started(order.child, order.incarnation, now_, out_);
}

void ProcessSupervisor::ask(std::size_t child, std::uint64_t incarnation) const {
  const Process& process = processes_[child];
  if (process.incarnation != incarnation || process.pid <= 0) return;
  if (!has_heard(process, stopped_by_)) kill(process.pid, SIGTERM);
  kill(process.pid, SIGCONT);  // one that is stopped would not hear it
}

void ProcessSupervisor::kill_now(std::size_t child, std::uint64_t incarnation) {
  Process& process = processes_[child];
  if (process.incarnation != incarnation) return;
  if (process.pid > 0) kill(process.pid, SIGKILL);
  process.orphans_until = now_;
}

// ------------------------------------------------------------------ what happens

// Whether the terminal has sent a signal to the process, too. It ignores the end of a terminal.
bool ProcessSupervisor::has_heard(const Process& process, int number) const {
  return from_terminal_ && number != SIGHUP && !process.missed_signal &&
         getpgid(process.pid) == getpgrp();
}

void ProcessSupervisor::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == sizeof info) {
    const int number = int(info.ssi_signo);
    if (number == SIGCHLD) continue;
    if (number == SIGUSR1 || number == SIGUSR2) {
      for (std::size_t k = 0; k < processes_.size(); ++k)
        if (processes_[k].pid > 0 && !options_.children[k].own_group)
          kill(processes_[k].pid, number);
      continue;
    }
    if (stopped_by_ != 0) {
      if (number == SIGHUP) continue;  // a closed terminal and its shell send one each
      hurry_ = true;
      machine_.kill_all(now_, out_);
      continue;
    }
    stopped_by_ = number;
    from_terminal_ = info.ssi_code == SI_KERNEL;
    machine_.stop(now_, out_);
  }
}

void ProcessSupervisor::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    ChildEnd end;
    if (WIFSIGNALED(status))
      end.signal = WTERMSIG(status);
    else
      end.code = WEXITSTATUS(status);
    bury(pid, end);
  }
}

void ProcessSupervisor::bury(pid_t pid, const ChildEnd& end) {
  not_ours_.erase(pid);  // its number may be given to one of ours
  for (Process& process : processes_) process.orphans.erase(pid);
  const auto it = std::find_if(processes_.begin(), processes_.end(),
                               [&](const Process& p) { return p.pid == pid; });
  if (it == processes_.end()) return;
  const auto k = std::size_t(it - processes_.begin());
  const ProcessSpec& spec = options_.children[k];
  it->pid = -1;
  it->exit = spec.meaning_of(end);
  // What it leaves is ours from now on.
  it->orphans = orphans(k);
  it->orphans_until =
      now_ + (machine_.ending() ? options_.asked_orphans_within : options_.orphans_within);
  if (hurry_) it->orphans_until = now_;
  if (machine_.ending())
    for (const pid_t orphan : it->orphans) {
      kill(orphan, SIGTERM);
      kill(orphan, SIGCONT);
    }
  if (options_.told)
    options_.told({.kind = Event::Kind::ended,
                   .child = spec.child.id,
                   .incarnation = it->incarnation,
                   .pid = pid,
                   .end = end,
                   .at = now_});
}

// The child that has left it, or let it go while it lives itself. None: it does not say, or that
// incarnation has ended and so have its orphans.
std::optional<std::size_t> ProcessSupervisor::owner_of(pid_t orphan) const {
  const std::optional<std::string> life = variable_of(orphan, kLife);
  for (std::size_t k = 0; life && k < processes_.size(); ++k)
    if ((processes_[k].pid > 0 || processes_[k].exit) && *life == processes_[k].life) return k;
  return std::nullopt;
}

// Children of this process that are nobody's yet, without those of another child.
std::set<pid_t> ProcessSupervisor::orphans(std::size_t child) const {
  std::set<pid_t> all = children_of_this();
  for (const pid_t other : not_ours_) all.erase(other);
  for (const Process& process : processes_) {
    all.erase(process.pid);
    for (const pid_t orphan : process.orphans) all.erase(orphan);
  }
  std::erase_if(all, [&](pid_t orphan) { return owner_of(orphan).value_or(child) != child; });
  return all;
}

void ProcessSupervisor::look_after_orphans() {
  for (std::size_t k = 0; k < processes_.size(); ++k) {
    Process& process = processes_[k];
    if (!process.exit) continue;
    // Theirs, in turn, become ours when they end. One that ended was taken out when it was reaped.
    process.orphans.merge(orphans(k));
    if (!process.orphans.empty()) {
      if (now_ < process.orphans_until) continue;
      // What the kernel does not let go keeps the next incarnation from being started, but not this
      // process from ending.
      for (const pid_t orphan : process.orphans) kill(orphan, SIGKILL);
      if (!machine_.ending() || now_ < process.orphans_until + kKernel) continue;
    }
    const ChildExit exit = *std::exchange(process.exit, std::nullopt);
    process.orphans.clear();
    report(k, process.incarnation, exit);
  }
}

void ProcessSupervisor::report(std::size_t child, std::uint64_t incarnation,
                               const ChildExit& exit) {
  const std::string& id = options_.children[child].child.id;
  if (options_.progressed && options_.progressed(id)) machine_.progressed();
  const int before = machine_.children()[child].restarts;
  machine_.ended(id, incarnation, exit, now_, out_);
  if (machine_.children()[child].restarts > before && options_.told)
    options_.told(
        {.kind = Event::Kind::restarting, .child = id, .incarnation = incarnation, .at = now_});
}

std::size_t ProcessSupervisor::index_of(const std::string& child) const {
  const auto it = std::find_if(options_.children.begin(), options_.children.end(),
                               [&](const ProcessSpec& spec) { return spec.child.id == child; });
  return std::size_t(it - options_.children.begin());
}

}  // namespace troupe
