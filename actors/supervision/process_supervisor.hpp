// Keeps processes running.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/processes/children.hpp"
#include "actors/supervision/supervision.hpp"
#include "core/status.hpp"

namespace troupe {

struct ProcessSpec {
  ChildSpec child;
  // A program, searched for as a shell does, and its arguments.
  std::vector<std::string> command = {};
  // Variables that it gets in addition to those of this process.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string input = {};  // a file that is its standard input; empty: that of this process
  // Not in this process's group: signals of the terminal do not reach it, nor do those passed on.
  bool own_group = false;
  // The meaning of its end. Without it, exit code 0 is normal.
  std::function<ChildExit(const ChildEnd& end)> exit = {};

  ChildExit meaning_of(const ChildEnd& end) const;
};

// A supervisor whose children are processes: one poll loop on the thread that calls run(). That
// must be the only thread of the process, or all others must block the signals below.
//
// A child is asked to end by SIGTERM (and SIGCONT). It is in the process group of this process, so
// that job control (Ctrl-Z, `fg`) stops and continues both. It gets SIGTERM if this process dies.
// It is started with SIGHUP ignored: when a terminal is closed the shell sends that to the group,
// and a child without a handler would end before it is asked.
//
// SIGTERM, SIGINT, SIGHUP and SIGQUIT stop the supervisor, except those that are ignored when run()
// is called, as under nohup; a second one, except SIGHUP, kills all children. SIGINT and SIGQUIT
// from a terminal have already reached a child of the group and are not repeated. SIGUSR1 and
// SIGUSR2 are passed on to the children of the group.
//
// Processes that a child leaves behind become children of this process (PR_SET_CHILD_SUBREAPER).
// They tell whose they are by the variable TROUPE_LIFE, which each child gets and they inherit; one
// without it is taken for one of the child that ended.
// They have `orphans_within` to end and are then killed; when the supervisor stops, they are asked
// first, and have `asked_orphans_within`. A child counts as ended only when they are gone, so that
// no two incarnations live at once. Children that this process had before are not touched.
class ProcessSupervisor {
 public:
  // What happened to a child, in order.
  struct Event {
    enum class Kind : std::uint8_t { started, not_started, ended, restarting } kind;
    std::string child;
    std::uint64_t incarnation = 0;
    pid_t pid = 0;      // started, ended
    ChildEnd end = {};  // ended
    Status why = {};    // not_started
    Instant at{};       // when, by a clock that stands still while this process does and waits
  };
  struct Options {
    SupervisorSpec spec;
    std::vector<ProcessSpec> children;
    std::chrono::milliseconds orphans_within{5000}, asked_orphans_within{60'000};
    std::function<void(const Event&)> told = {};
    // Called when this child has ended: whether the work of the children got further than ever, or
    // the child lived long, so that earlier restarts no longer count.
    std::function<bool(const std::string& child)> progressed = {};
    // Called after each look at the children and signals, at least every `look_every`.
    std::function<void()> looked = {};
    std::chrono::milliseconds look_every = std::chrono::milliseconds::max();
  };

  // invalid_argument: SupervisorSpec::check, or a child without a command.
  static Expected<std::unique_ptr<ProcessSupervisor>> make(Options options);
  ~ProcessSupervisor();
  ProcessSupervisor(const ProcessSupervisor&) = delete;
  ProcessSupervisor& operator=(const ProcessSupervisor&) = delete;

  // Runs until no child is left; returns the status of Supervision::Over. Call it once.
  Status run();
  // The first signal that asked it to stop; 0: none did.
  int stopped_by() const { return stopped_by_; }
  std::vector<Supervision::Child> children() const { return machine_.children(); }

 private:
  struct Process;
  explicit ProcessSupervisor(Options options);

  void carry_out(const Supervision::Output& output);
  void start(const Supervision::Start& order);
  void ask(std::size_t child, std::uint64_t incarnation) const;
  void kill_now(std::size_t child, std::uint64_t incarnation);
  void listen();
  void take_signals();
  bool has_heard(const Process& process, int number) const;
  void reap();
  void bury(pid_t pid, const ChildEnd& end);
  std::optional<std::size_t> owner_of(pid_t orphan) const;
  std::set<pid_t> orphans(std::size_t child) const;
  void look_after_orphans();
  void report(std::size_t child, std::uint64_t incarnation, const ChildExit& exit);
  std::size_t index_of(const std::string& child) const;

  const Options options_;
  Supervision machine_;
  Supervision::Outputs out_;
  std::vector<Process> processes_;  // those of options_.children
  std::optional<Status> over_;
  Instant now_{0};
  int signals_ = -1;  // a signalfd
  int stopped_by_ = 0;
  bool from_terminal_ = false, hurry_ = false;
  std::set<pid_t> not_ours_;
};

}  // namespace troupe
