// troupe run: keeps a program running until its job is done.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "actors/job/job.hpp"
#include "actors/supervision/program_lives.hpp"
#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "core/hash.hpp"
#include "core/number.hpp"
#include "serialization/checkpoint.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

// Processes that a dead program leaves have this long until they are killed: workers end when their
// master does.
constexpr std::chrono::seconds kLeaveWithin{5};

struct RunWords {
  std::string folder = "troupe-job";
  std::int64_t max_restarts = 10;
  double within = 60;
  std::vector<std::string> command;
};

Status cannot(std::string_view what, const std::string& path, int error) {
  return failed_precondition(fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

// The folder of a job: one supervisor at a time, and a log of the program's lives.
class JobFolder {
 public:
  static Expected<std::unique_ptr<JobFolder>> open(const std::string& path);
  ~JobFolder() {
    if (log_ >= 0) close(log_);
    if (lock_ >= 0) close(lock_);
  }
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::string& path() const { return path_; }
  // How far the job is: the step of its newest checkpoint.
  std::uint64_t position() const {
    const auto all = list_checkpoints(path_ + "/" + JobOptions::kCheckpoints);
    return !all.ok() || all->empty() ? 0 : all->back().step;
  }
  // A line of JSON, with the time.
  void log(nlohmann::ordered_json line) const {
    nlohmann::ordered_json whole = {{"time", std::time(nullptr)}};
    whole.update(line);
    const std::string text =
        whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    (void)!::write(log_, text.data(), text.size());
  }

 private:
  JobFolder() = default;
  std::string path_;
  int lock_ = -1, log_ = -1;
};

// Locks of other machines, or of a program in between, are not to be relied on.
Status local(const std::string& path) {
  constexpr std::pair<unsigned long, const char*> kRemote[] = {
      {NFS_SUPER_MAGIC, "NFS"}, {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB"}, {0x65735546, "FUSE"}};
  struct statfs system {};
  if (statfs(path.c_str(), &system) != 0) return cannot("look at", path, errno);
  for (const auto& [magic, name] : kRemote)
    if ((unsigned long)system.f_type == magic)
      return failed_precondition(fmt::format(
          "'{}' is on {}, where two supervisors may not see each other: name a folder on a disk of "
          "this machine",
          path, name));
  return ok_status();
}

Expected<std::unique_ptr<JobFolder>> JobFolder::open(const std::string& path) {
  std::unique_ptr<JobFolder> folder(new JobFolder);
  TROUPE_TRY(disk().make_dirs(path));
  TROUPE_TRY(local(path));
  if (chmod(path.c_str(), 0700) != 0) return cannot("close to others", path, errno);
  std::unique_ptr<char, decltype(&std::free)> whole(realpath(path.c_str(), nullptr), std::free);
  if (!whole) return cannot("find", path, errno);
  folder->path_ = whole.get();
  // The program and its workers inherit the lock: it is held until the last of them is gone.
  const std::string lock = folder->path_ + "/lock", log = folder->path_ + "/lives.log";
  folder->lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT, 0600);
  if (folder->lock_ < 0) return cannot("open", lock, errno);
  if (flock(folder->lock_, LOCK_EX | LOCK_NB) != 0)
    return failed_precondition(fmt::format(
        "the job in '{}' is running already, or processes of it are still ending", path));
  folder->log_ = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (folder->log_ < 0) return cannot("open", log, errno);
  return folder;
}

// One poll loop around one program.
class Supervisor {
 public:
  Supervisor(const RunWords& words, const JobFolder& folder, bool quiet)
      : words_(words),
        folder_(folder),
        quiet_(quiet),
        lives_({.restarts = std::size_t(words.max_restarts),
                .window = std::chrono::duration_cast<Instant>(
                    std::chrono::duration<double>(words.within))},
               mix64(std::uint64_t(getpid()) ^ std::uint64_t(std::time(nullptr)))) {}

  int run();

 private:
  bool start();
  void end_others();
  void on_signal(const siginfo_t& info);
  void reap();
  // Until `until`, or whatever signal comes.
  void wait(Clock::time_point until);
  static Instant now() { return Clock::now().time_since_epoch(); }
  void say(const std::string& text) const {
    if (!quiet_) print_err("troupe run: {}\n", text);
  }

  const RunWords& words_;
  const JobFolder& folder_;
  const bool quiet_;
  ProgramLives lives_;
  sigset_t heard_{}, before_{};
  pid_t program_ = -1;
  bool over_ = false;  // the program, and how
  ProgramLives::End end_;
};

int Supervisor::run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // workers of a program that died are reaped here
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&heard_, signal);
  sigprocmask(SIG_BLOCK, &heard_, &before_);
  for (;;) {
    over_ = false;
    if (!start()) return 127;
    folder_.log({{"event", "started"}, {"life", lives_.restarts() + 1}, {"pid", program_}});
    while (!over_) wait(Clock::time_point::max());
    end_others();
    const std::uint64_t position = folder_.position();
    const auto decision = lives_.ended(end_, position, now());
    folder_.log({{"event", "ended"}, {"how", end_.text()}, {"step", position}});
    if (!decision.again) {
      if (!decision.why.empty()) say("the program " + decision.why);
      return decision.exit_code;
    }
    say(fmt::format("the program {} at step {}: starting it again", decision.why, position));
    const auto until = Clock::now() + *decision.again;
    while (!lives_.stopped() && Clock::now() < until) wait(until);
    if (lives_.stopped()) return lives_.ended({ProgramLives::kAgain, 0}, position, now()).exit_code;
  }
}

// False: it cannot be run, which was said.
bool Supervisor::start() {
  std::vector<char*> argv;
  for (const std::string& word : words_.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int failed[2];  // the child's errno, or its end at exec
  if (pipe2(failed, O_CLOEXEC) != 0) {
    print_err("error: no pipe: {}\n", std::strerror(errno));
    return false;
  }
  const pid_t supervisor = getpid();
  program_ = fork();
  if (program_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody would start a second one beside it
    if (getppid() != supervisor) _exit(ProgramLives::kAgain);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    setenv(JobOptions::kFolderVariable, folder_.path().c_str(), 1);
    execvp(argv[0], argv.data());
    const int error = errno;
    (void)!::write(failed[1], &error, sizeof error);
    _exit(127);
  }
  close(failed[1]);
  int error = program_ < 0 ? errno : 0;
  if (program_ > 0 && ::read(failed[0], &error, sizeof error) != sizeof error) error = 0;
  close(failed[0]);
  if (error == 0) return true;
  print_err("error: cannot run '{}': {}\n", words_.command[0], std::strerror(error));
  return false;
}

// What the program leaves is ours since it died. It has some seconds to end.
void Supervisor::end_others() {
  const auto until = Clock::now() + kLeaveWithin;
  for (bool asked = false;;) {
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return;  // there is none
    if (ended > 0) continue;
    if (Clock::now() < until) {
      wait(std::min(until, Clock::now() + std::chrono::milliseconds(50)));
      continue;
    }
    if (std::exchange(asked, true)) return;
    const std::string path = fmt::format("/proc/self/task/{}/children", getpid());
    std::string text;
    if (const auto bytes = std::fopen(path.c_str(), "r")) {
      char piece[4096];
      while (const std::size_t n = std::fread(piece, 1, sizeof piece, bytes)) text.append(piece, n);
      std::fclose(bytes);
    }
    for (std::size_t at = 0, end; (end = text.find(' ', at)) != text.npos; at = end + 1)
      if (const auto child = parse_number<pid_t>(text.substr(at, end - at))) kill(*child, SIGKILL);
    wait(Clock::now() + std::chrono::milliseconds(100));
  }
}

void Supervisor::reap() {
  int status = 0;
  for (pid_t ended; !over_ && (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended != program_) continue;
    over_ = true;
    end_ = WIFSIGNALED(status) ? ProgramLives::End{0, WTERMSIG(status)}
                               : ProgramLives::End{WEXITSTATUS(status), 0};
  }
}

void Supervisor::on_signal(const siginfo_t& info) {
  if (info.si_signo == SIGCHLD) return;
  lives_.stop(info.si_signo);
  // A terminal sends its signals to the whole group, the program included.
  if (!over_ && program_ > 0 && info.si_code != SI_KERNEL) kill(program_, info.si_signo);
}

void Supervisor::wait(Clock::time_point until) {
  siginfo_t info{};
  int signal = -1;
  if (until == Clock::time_point::max()) {
    signal = sigwaitinfo(&heard_, &info);
  } else {
    const auto left = std::max(Clock::duration::zero(), until - Clock::now());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec time{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
    signal = sigtimedwait(&heard_, &info, &time);
  }
  if (signal > 0) on_signal(info);
  if (!over_) reap();
}

int run_program(const RunWords& words, const Printing& printing) {
  auto folder = JobFolder::open(words.folder);
  if (!folder.ok()) return report_error(folder.status(), printing);
  return Supervisor(words, **folder, printing.quiet).run();
}

}  // namespace

void add_run(CommandLine& line) {
  auto words = std::make_shared<RunWords>();
  Command c = line.command(
      "run", "Keep a program running until its job is done: troupe run -- PROGRAM [ARGS]");
  c.option("command", words->command, "the program and its arguments, after --").required();
  c.option("--job", words->folder,
           "folder of the job: checkpoints, lock, log of its lives (default: troupe-job)");
  c.option("--max-restarts", words->max_restarts,
           "restarts in a row without getting further, within --within (default: 10)")
      .within(0, 1'000'000);
  c.option("--within", words->within, "seconds (default: 60)").above(0, 1e9);
  c.runs([words, &line] { return run_program(*words, line.printing()); });
}

}  // namespace troupe
