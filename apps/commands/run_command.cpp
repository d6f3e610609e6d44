// troupe run: keeps a program running until its job is done.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "actors/job/job_folder.hpp"
#include "actors/net/transport.hpp"
#include "actors/processes/event_queue.hpp"
#include "actors/processes/worker_room.hpp"
#include "actors/runtime/worker_process.hpp"
#include "actors/supervision/kept_workers.hpp"
#include "actors/supervision/process_supervisor.hpp"
#include "actors/supervision/service_manager.hpp"
#include "apps/commands/command_line.hpp"
#include "apps/commands/job_metrics.hpp"
#include "apps/commands/print.hpp"
#include "core/coarse_clock.hpp"
#include "core/descriptor.hpp"
#include "serialization/file.hpp"

namespace troupe {
namespace {

constexpr int kAgain = 75;  // EX_TEMPFAIL: a part of the program's job was lost
constexpr int kNotFound = 127, kCannotRun = 126;  // as shells say it
constexpr const char* kProgram = "program";
constexpr std::chrono::milliseconds kTellManagerEvery{1000};

struct RunWords {
  std::string folder = "troupe-job";
  std::int64_t max_restarts = 10;
  double within = 60;
  std::vector<std::string> command;
  std::int64_t workers = 0, spares = 0;
  std::string hosts, ssh = "ssh", listen, secret_file;
  std::string metrics;
};

// Every other exit code is the program's own word, and the supervisor's, too: 0, an error of its
// input, a stop that it was asked for.
bool may_pass(const ChildEnd& end) { return end.signal != 0 || end.code == kAgain; }

int code_of(const ChildEnd& end) { return end.signal != 0 ? 128 + end.signal : end.code; }

// A supervisor of one program, and what it says and writes down.
//
// The budget is of lives in a row, of the program or a worker, that were short and got the job no
// further than it ever was. So a program that dies at the same place each time ends with its cause,
// however long it takes to get there, and faults in a job that gets on, or that are far apart,
// never end it.
class ProgramRun {
 public:
  ProgramRun(const RunWords& words, const JobFolder& folder, KeptWorkers workers,
             ServiceManager manager, bool quiet)
      : words_(words),
        workers_(std::move(workers)),
        folder_(folder),
        manager_(std::move(manager)),
        quiet_(quiet),
        within_(std::chrono::duration_cast<Instant>(std::chrono::duration<double>(words.within))) {}

  int run();
  // How long ago it looked after the program. Any thread.
  JobMetrics::Seconds since_look() const {
    return std::chrono::nanoseconds(coarse_now_ns() - looked_ns_.load());
  }

 private:
  ProcessSupervisor::Options options();
  void told(const ProcessSupervisor::Event& event);
  void told_of_worker(const ProcessSupervisor::Event& event);
  bool progressed(const std::string& child);
  void tell_manager();
  void log(const nlohmann::ordered_json& fields);
  void say(const std::string& text) const {
    if (!quiet_) print_err("troupe run: {}\n", text);
  }

  const RunWords& words_;
  const KeptWorkers workers_;
  const JobFolder& folder_;
  ServiceManager manager_;
  std::unique_ptr<ProcessSupervisor> supervisor_;
  const bool quiet_;
  const Instant within_;
  bool log_failed_ = false, folder_gone_ = false;
  std::uint64_t position_ = 0, furthest_ = 0, life_ = 0;
  bool told_of_stop_ = false;
  std::atomic<std::int64_t> looked_ns_{coarse_now_ns()};
  struct Life {
    Instant began{}, lasted{};
  };
  std::map<std::string, Life> lives_;  // the last one of each child
  ChildEnd end_;                       // of the last life
  Status cannot_start_;                // ok: it could
  // Who ended and was not started again, in this order, and how.
  std::vector<std::pair<std::string, std::string>> ended_;
};

ProcessSupervisor::Options ProgramRun::options() {
  ProcessSupervisor::Options options;
  options.spec = {.intensity = int(words_.max_restarts),
                  .period = kNever / 4,  // see progressed()
                  .first_pause = std::chrono::milliseconds(50),
                  .longest_pause = std::chrono::seconds(5),
                  .auto_shutdown = AutoShutdown::any_significant};
  // It has the time that it needs to write its last checkpoint.
  options.children = workers_.specs();
  // Behind them: it is the first that is stopped.
  options.children.push_back(
      {.child = {.id = kProgram,
                 .restart = Restart::transient,
                 .shutdown = Shutdown::infinite(),
                 .significant = true},
       .command = workers_.count() > 0 ? workers_.tell(words_.command) : words_.command,
       .environment = {{JobFolder::kVariable, folder_.path()}},
       .exit = [this](const ChildEnd& end) {
         folder_gone_ = !folder_.is_there();
         return ChildExit{!may_pass(end) || folder_gone_, end.text()};
       }});
  options.told = [this](const ProcessSupervisor::Event& event) { told(event); };
  options.progressed = [this](const std::string& child) { return progressed(child); };
  // Nobody else asks how it is.
  if (!manager_.is_there() && words_.metrics.empty()) return options;
  options.looked = [this] {
    looked_ns_ = coarse_now_ns();
    if (manager_.is_there()) tell_manager();
  };
  options.look_every = std::chrono::floor<std::chrono::milliseconds>(std::clamp<Instant>(
      manager_.alive_every() / 2, std::chrono::milliseconds(1), kTellManagerEvery));
  return options;
}

bool ProgramRun::progressed(const std::string& child) {
  position_ = JobFolder::position(folder_.path()).step;
  const bool further = position_ > furthest_;
  furthest_ = std::max(furthest_, position_);
  return further || lives_[child].lasted >= within_;
}

// It is alive, how far the job is, and that it ends.
void ProgramRun::tell_manager() {
  if (supervisor_->stopped_by() != 0 && !std::exchange(told_of_stop_, true))
    manager_.tell("STOPPING=1");
  manager_.tell_alive(steady_now());
  std::uint64_t step = position_;
  if (const auto page = ProgressPage::read(folder_.path())) step = (*page)->step;
  manager_.tell_status(fmt::format("step {}, life {}", step, life_));
}

void ProgramRun::told(const ProcessSupervisor::Event& event) {
  using Kind = ProcessSupervisor::Event::Kind;
  Life& life = lives_[event.child];
  if (event.kind == Kind::started) life.began = event.at;
  if (event.kind == Kind::ended) life.lasted = event.at - life.began;
  if (event.kind == Kind::not_started) life.lasted = Instant(0);
  if (event.kind == Kind::ended || event.kind == Kind::not_started)
    ended_.emplace_back(event.child,
                        event.kind == Kind::ended ? event.end.text() : event.why.message());
  if (event.kind == Kind::restarting)
    std::erase_if(ended_, [&](const auto& each) { return each.first == event.child; });
  if (event.child != kProgram) return told_of_worker(event);
  switch (event.kind) {
    case Kind::started:
      cannot_start_ = ok_status();
      life_ = event.incarnation;
      if (life_ == 1) manager_.tell("READY=1");
      return log({{"event", "started"}, {"life", event.incarnation}, {"pid", event.pid}});
    case Kind::not_started:
      cannot_start_ = event.why;
      return log(
          {{"event", "not started"}, {"life", event.incarnation}, {"why", event.why.text()}});
    case Kind::ended: {
      end_ = event.end;
      const JobFolder::LastError error = folder_.take_error();
      nlohmann::ordered_json line = {{"event", "ended"},
                                     {"life", event.incarnation},
                                     {"how", end_.text()},
                                     {"fault", may_pass(end_)},
                                     {"step", JobFolder::position(folder_.path()).step}};
      if (!error.report.empty()) line["error"] = {{"code", error.code}, {"report", error.report}};
      return log(line);
    }
    case Kind::restarting:
      break;
  }
  say(cannot_start_.ok()
          ? fmt::format("the program {} at step {}: starting it again", end_.text(), position_)
          : cannot_start_.message() + ": trying again");
}

void ProgramRun::told_of_worker(const ProcessSupervisor::Event& event) {
  using Kind = ProcessSupervisor::Event::Kind;
  if (event.kind == Kind::started)
    log({{"event", "worker started"}, {"worker", event.child}, {"pid", event.pid}});
  else if (event.kind == Kind::ended)
    log({{"event", "worker ended"}, {"worker", event.child}, {"how", event.end.text()}});
  else if (event.kind == Kind::not_started)
    log({{"event", "worker not started"}, {"worker", event.child}, {"why", event.why.text()}});
  else
    say(event.child + " ended: starting it again");
}

void ProgramRun::log(const nlohmann::ordered_json& fields) {
  const Status written = folder_.log(fields);
  if (!written.ok() && !std::exchange(log_failed_, true)) say(written.text());
}

int ProgramRun::run() {
  (void)folder_.take_error();  // of somebody who was killed before it could tell
  auto supervisor = ProcessSupervisor::make(options());
  throw_if_error(supervisor.status());
  supervisor_ = std::move(*supervisor);
  const Status over = supervisor_->run();
  if (!told_of_stop_) manager_.tell("STOPPING=1");
  if (const int signal = supervisor_->stopped_by(); signal != 0) {
    const bool asked = life_ == 0 || may_pass(end_) || code_of(end_) > 128;
    return asked ? 128 + signal : code_of(end_);
  }
  if (!over.ok() && !ended_.empty() && ended_.front().first != kProgram) {
    print_err("error: {} {}, and the job got no further\n", ended_.front().first,
              ended_.front().second);
    return kAgain;
  }
  if (!cannot_start_.ok()) {
    print_err("error: {}\n", cannot_start_.message());
    return cannot_start_.code() == Code::not_found ? kNotFound : kCannotRun;
  }
  if (folder_gone_)
    say(fmt::format("the program {}, and its folder '{}' was removed: it is not started again",
                    end_.text(), folder_.path()));
  else if (!over.ok())
    say(fmt::format(
        "the program {}, {} times within {:g} s of its start and without getting further than "
        "step {}",
        end_.text(), words_.max_restarts + 1, words_.within, furthest_));
  else if (code_of(end_) != 0)
    say("the program " + end_.text());
  return code_of(end_);
}

// A secret of the job's own, made once. What a supervisor that was killed left half made has
// another name.
Expected<std::string> own_secret(const JobFolder& folder) {
  const std::string path = folder.path() + "/secret", draft = path + ".new";
  if (struct stat there{}; stat(path.c_str(), &there) == 0 && there.st_size > 0) {
    TROUPE_TRY(read_secret(path).status());
    return path;
  }
  std::array<unsigned char, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    return failed_precondition("this machine has no random bytes for a secret");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  const Descriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || ::write(file.get(), text.data(), text.size()) != ssize_t(text.size()) ||
      fsync(file.get()) != 0)
    return failed_precondition(fmt::format("cannot write '{}': {}", draft, std::strerror(errno)));
  TROUPE_TRY(put_in_place(disk(), draft, path));
  return path;
}

// An address of this machine that stays the job's. The socket has the port and does not listen
// there: a program may, in each of its lives, and meanwhile nobody else gets the port by chance.
struct OwnAddress {
  std::string text;
  Descriptor holder;
};

Expected<OwnAddress> free_address() {
  Descriptor holder(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // as of whoever is to listen there
  (void)setsockopt(holder.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool found = bind(holder.get(), reinterpret_cast<const sockaddr*>(&at), size) == 0 &&
                     getsockname(holder.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0;
  if (!found) return unavailable("this machine has no free port");
  return OwnAddress{fmt::format("127.0.0.1:{}", ntohs(at.sin_port)), std::move(holder)};
}

// Of the words alone.
Expected<KeptWorkers> workers_of(const RunWords& words) {
  KeptWorkers workers;
  workers.local = int(words.workers);
  workers.listen = words.listen;
  workers.secret_file = words.secret_file;
  if (!words.hosts.empty()) {
    TROUPE_TRY(workers.hosts, read_hosts(words.hosts));
    if (words.listen.empty())
      return invalid_argument("--hosts needs --listen HOST:PORT, which these hosts reach");
  }
  if (words.spares > 0 && workers.hosts.empty()) workers.local += int(words.spares);
  workers.spares = int(words.spares);
  if (workers.spares >= std::max(1, workers.count()))
    return invalid_argument(
        "--spares wants other workers beside them: --workers N, or more hosts in --hosts FILE");
  if (workers.count() == 0) {
    if (!words.listen.empty() || !words.secret_file.empty())
      return invalid_argument("--listen and --secret-file need --workers N or --hosts FILE");
    return workers;
  }
  if (!words.listen.empty()) {
    TROUPE_TRY(const Endpoint at, parse_endpoint(words.listen));
    if (at.port == 0) return invalid_argument("--listen wants a port that workers know, not 0");
  }
  if (words.secret_file == "-")
    return invalid_argument(
        "--secret-file wants a file, not standard input: the program and each worker read it, in "
        "each of their lives");
  if (!words.secret_file.empty()) TROUPE_TRY(read_secret(words.secret_file).status());
  workers.ssh.clear();
  for (std::size_t at = 0; at < words.ssh.size();) {
    const std::size_t end = std::min(words.ssh.find(' ', at), words.ssh.size());
    if (end > at) workers.ssh.push_back(words.ssh.substr(at, end - at));
    at = end + 1;
  }
  if (workers.ssh.empty()) return invalid_argument("--ssh wants a command, not ''");
  return workers;
}

// And what is the job's own. Of the address: as long as `held` is there.
Status complete(KeptWorkers& workers, const JobFolder& folder, OwnAddress& held) {
  if (workers.count() == 0) return ok_status();
  std::error_code none;
  workers.troupe = std::filesystem::read_symlink("/proc/self/exe", none).string();
  if (workers.listen.empty()) {
    TROUPE_TRY(held, free_address());
    workers.listen = held.text;
  }
  if (workers.secret_file.empty()) {
    TROUPE_TRY(workers.secret_file, own_secret(folder));
  }
  return ok_status();
}

int run_program(const RunWords& words, const Printing& printing) {
  auto workers = workers_of(words);
  if (!workers.ok()) return report_usage(workers.status(), printing);
  Expected<Endpoint> metrics_at = Endpoint{};
  if (!words.metrics.empty()) metrics_at = parse_metrics_address(words.metrics);
  if (!metrics_at.ok()) return report_usage(metrics_at.status().in("--metrics"), printing);
  if (const Status room = check_room(workers->local, WorkerRoom::here()); !room.ok())
    return report_error(room, printing);
  // Before anything is started.
  ServiceManager manager = ServiceManager::of_this_process();
  auto folder = JobFolder::open(words.folder);
  if (!folder.ok()) return report_error(folder.status(), printing);
  OwnAddress held;
  if (const Status status = complete(*workers, **folder, held); !status.ok())
    return report_error(status, printing);
  ProgramRun run(words, **folder, std::move(*workers), std::move(manager), printing.quiet);
  std::unique_ptr<JobMetrics> metrics;
  if (!words.metrics.empty()) {
    auto started =
        JobMetrics::start(*metrics_at, (*folder)->path(), [&run] { return run.since_look(); });
    if (!started.ok()) return report_error(started.status(), printing);
    metrics = std::move(*started);
    if (!printing.quiet)
      print_err("troupe run: http://{}/metrics, and /healthz, /readyz\n",
                metrics->address().text());
  }
  return run.run();
}

}  // namespace

void add_run(CommandLine& line) {
  auto words = std::make_shared<RunWords>();
  Command c = line.command(
      "run", "Keep a program running until its job is done: troupe run -- PROGRAM [ARGS]");
  c.rest(words->command, "the program and its arguments, after --");
  c.option("--job", words->folder,
           "folder of the job: checkpoints, lock, log of its lives (default: troupe-job)");
  c.option("--max-restarts", words->max_restarts,
           "restarts in a row after lives shorter than --within that got the job no further "
           "(default: 10)")
      .within(0, 1'000'000);
  c.option("--within", words->within, "seconds (default: 60)").above(0, 1e9);
  c.option("--workers", words->workers,
           "workers on this machine, which are kept running, too; the program gets --listen, "
           "--wait-for and --secret-file (default: 0)")
      .within(0, 4096);
  c.option("--spares", words->spares,
           "workers that wait to replace lost ones: beside those of --workers, or of those of "
           "--hosts (default: 0)")
      .within(0, 4096);
  c.option("--hosts", words->hosts,
           "file of hosts, one a line or as node[1-3]; a worker is kept running on each");
  c.option("--ssh", words->ssh, "command that runs `troupe worker` on a host (default: ssh)");
  c.option("--listen", words->listen,
           "HOST:PORT at which the program waits for them (default: a free port of 127.0.0.1)");
  c.option("--secret-file", words->secret_file,
           "file of 16 to 64 bytes for the program and its workers (default: JOB/secret, made)");
  c.option(
      "--metrics", words->metrics,
      "[HOST:]PORT at which the job tells of itself by HTTP: /metrics for Prometheus, /healthz "
      "and /readyz (default: nowhere; HOST 127.0.0.1)");
  c.runs([words, &line] { return run_program(*words, line.printing()); });
}

}  // namespace troupe
