// troupe chaos: what a program under troupe run makes of faults.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "actors/job/job_folder.hpp"
#include "actors/supervision/start_process.hpp"
#include "apps/commands/command_line.hpp"
#include "apps/commands/job_look.hpp"
#include "apps/commands/print.hpp"
#include "core/hash.hpp"
#include "serialization/checkpoint.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{1};                         // between looks at a job's progress
constexpr std::chrono::seconds kPatience{120};           // for the next step, and for a job's end
constexpr milliseconds kFullFor{1500}, kPauseFor{3000};  // a disk, a master

double milliseconds_since(Clock::time_point moment) {
  return std::chrono::duration<double, std::milli>(Clock::now() - moment).count();
}

// One run of the program under `troupe run`, in a folder of its own.
class ChaosJob {
 public:
  ChaosJob(std::string folder, const std::vector<std::string>& program,
           std::vector<std::string> options = {})
      : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    const std::string here = fs::read_symlink("/proc/self/exe");
    std::vector<std::string> command = {
        "sh",    "-c", "cd=$0; exec \"$@\" > \"$cd/out\" 2> \"$cd/err\"", folder_, here, "run",
        "--job", job()};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back("--");
    command.insert(command.end(), program.begin(), program.end());
    supervisor_ = value_or_throw(start_process(command, {}));
  }
  ~ChaosJob() {
    if (end_) return;
    for (const ProcessLook& each : process_tree(supervisor_)) kill(each.pid, SIGKILL);
    (void)waitpid(supervisor_, nullptr, 0);
  }
  ChaosJob(const ChaosJob&) = delete;
  ChaosJob& operator=(const ChaosJob&) = delete;

  std::string job() const { return folder_ + "/job"; }
  // The program, and what it started; 0 and empty while there is none.
  pid_t program() const {
    const auto all = children_of(supervisor_);
    return all.empty() ? 0 : all.front();
  }
  std::vector<pid_t> workers() const {
    return program() == 0 ? std::vector<pid_t>() : children_of(program());
  }
  std::uint64_t step() {
    if (!page_) page_ = ProgressPage::read(job());
    return page_ ? (*page_)->step.load() : 0;
  }
  bool has_checkpoint() const { return !JobFolder::position(job()).checkpoint.empty(); }
  // The exit code, once it has ended.
  std::optional<int> end() {
    int status = 0;
    if (!end_ && waitpid(supervisor_, &status, WNOHANG) == supervisor_)
      end_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return end_;
  }
  // Looks until it is so. False: the job has ended, or patience is over.
  bool wait_until(const std::function<bool()>& there) {
    for (const auto until = Clock::now() + kPatience; Clock::now() < until;) {
      if (there()) return true;
      if (end()) return false;
      std::this_thread::sleep_for(kLook);
    }
    return false;
  }
  // Its exit code; -1 if it has not ended within `patience`.
  int wait(Clock::duration patience = kPatience) {
    for (const auto until = Clock::now() + patience; !end() && Clock::now() < until;)
      std::this_thread::sleep_for(kLook);
    return end().value_or(-1);
  }
  std::int64_t lives() const {
    const auto look = read_lives(job());
    return look.ok() ? look->lives : 0;
  }
  // Of the variables in its last checkpoint; empty: there is none.
  std::string params_sha256() const {
    std::ifstream manifest(JobFolder::position(job()).checkpoint + "/manifest.json");
    const auto json = nlohmann::json::parse(manifest, nullptr, false);
    return json.is_object() && json.contains("params_sha256") && json["params_sha256"].is_string()
               ? json["params_sha256"].get<std::string>()
               : std::string();
  }
  std::string said() const {
    std::ifstream file(folder_ + "/err");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.substr(text.size() - std::min<std::size_t>(text.size(), 500));
  }

 private:
  const std::string folder_;
  pid_t supervisor_ = -1;
  std::optional<int> end_;
  std::unique_ptr<const ProgressPage> page_;
};

// One trial: at some moment of a job. False: it could not be done, e.g. because the job was over.
using Inject = std::function<bool(ChaosJob& job, Random& random)>;

struct Fault {
  const char* name;
  const char* about;
  Inject inject;
  bool goes_on = true;  // else the job is to end, with its cause
};

bool signal_to(pid_t pid, int number) { return pid > 0 && kill(pid, number) == 0; }

pid_t any_of(const std::vector<pid_t>& pids, Random& random) {
  return pids.empty() ? 0 : pids[random.below(pids.size())];
}

// A byte in the middle of the newest checkpoint's largest file.
bool corrupt_newest(const ChaosJob& job) {
  const std::string checkpoint = JobFolder::position(job.job()).checkpoint;
  fs::path largest;
  std::uintmax_t size = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(checkpoint, none))
    if (const auto bytes = entry.file_size(none); !none && bytes > size) {
      size = bytes;
      largest = entry.path();
    }
  if (size == 0) return false;
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(std::streamoff(size / 2));
  const int byte = file.get();
  file.seekp(std::streamoff(size / 2));
  file.put(char(byte ^ 0x40));
  return bool(file);
}

// No file of the process grows for a while.
bool fill_disk(pid_t pid) {
  rlimit before{};
  if (pid <= 0 || prlimit(pid, RLIMIT_FSIZE, nullptr, &before) != 0) return false;
  rlimit none = before;
  none.rlim_cur = 0;
  if (prlimit(pid, RLIMIT_FSIZE, &none, nullptr) != 0) return false;
  std::this_thread::sleep_for(kFullFor);
  (void)prlimit(pid, RLIMIT_FSIZE, &before, nullptr);
  for (const pid_t worker : children_of(pid))  // one that was started meanwhile
    (void)prlimit(worker, RLIMIT_FSIZE, &before, nullptr);
  return true;
}

std::vector<Fault> faults() {
  return {
      {"kill-worker", "a worker is killed",
       [](ChaosJob& job, Random& random) {
         return signal_to(any_of(job.workers(), random), SIGKILL);
       }},
      {"kill-master", "the program is killed",
       [](ChaosJob& job, Random&) { return signal_to(job.program(), SIGKILL); }},
      {"kill-all", "the program and its workers are killed",
       [](ChaosJob& job, Random&) {
         const auto workers = job.workers();
         const bool killed = signal_to(job.program(), SIGKILL);
         for (const pid_t worker : workers) kill(worker, SIGKILL);
         return killed;
       }},
      {"stop", "a worker is stopped for good",
       [](ChaosJob& job, Random& random) {
         return signal_to(any_of(job.workers(), random), SIGSTOP);
       }},
      {"pause-master", "the program is stopped for 3 s",
       [](ChaosJob& job, Random&) {
         const pid_t program = job.program();
         if (!signal_to(program, SIGSTOP)) return false;
         std::this_thread::sleep_for(kPauseFor);
         return signal_to(program, SIGCONT);
       }},
      {"disk-full", "the program can write no file for 1.5 s",
       [](ChaosJob& job, Random&) { return fill_disk(job.program()); }},
      {"corrupt-checkpoint", "the newest checkpoint is damaged and the program is killed",
       [](ChaosJob& job, Random&) {
         // With an older one to go back to.
         const auto several = [&] {
           const auto all = list_checkpoints(job.job() + "/" + JobFolder::kCheckpoints);
           return all.ok() && all->size() > 1;
         };
         if (!job.wait_until(several)) return false;
         const pid_t program = job.program();
         return corrupt_newest(job) && signal_to(program, SIGKILL);
       }},
      {"rolling-restart", "each worker is killed in turn, and the program at last",
       [](ChaosJob& job, Random&) {
         const std::size_t workers = job.workers().size();
         for (std::size_t k = 0; k < workers; ++k) {
           const auto now = job.workers();
           const std::uint64_t step = job.step();
           if (k < now.size() && !signal_to(now[k], SIGKILL)) return false;
           if (!job.wait_until([&] { return job.step() > step; })) return false;
         }
         return signal_to(job.program(), SIGKILL);
       }},
      {"crash-loop", "each life is killed before it has made a step",
       [](ChaosJob& job, Random&) {
         pid_t last = 0;
         const auto until = Clock::now() + kPatience;
         while (!job.end() && Clock::now() < until) {
           const pid_t now = job.program();
           if (now > 0 && now != last && signal_to(now, SIGKILL)) last = now;
           std::this_thread::sleep_for(kLook);
         }
         return true;
       },
       /*goes_on=*/false},
  };
}

struct ChaosWords {
  std::vector<std::string> faults;
  std::int64_t trials = 5;
  std::uint64_t seed = 0;
  std::string folder;
  std::vector<std::string> program;
};

// The trials of one fault.
struct Row {
  std::string fault;
  int trials = 0, went_on = 0, same = 0;
  std::vector<double> next_step_ms;
  std::vector<double> twice;
  std::int64_t restarts = 0;
  std::string trouble;  // the first

  bool good(bool goes_on) const {
    return trials > 0 && (goes_on ? went_on == trials && same == trials : went_on == 0) &&
           trouble.empty();
  }
};

double percentile(std::vector<double> of, double share) {
  if (of.empty()) return 0;
  std::sort(of.begin(), of.end());
  return of[std::min(of.size() - 1, std::size_t(share * double(of.size())))];
}

class Chaos {
 public:
  Chaos(const ChaosWords& words, const Printing& printing)
      : words_(words), printing_(printing), random_(words.seed) {}

  int run(const std::vector<Fault>& chosen) {
    {
      ChaosJob whole(words_.folder + "/whole", words_.program);
      const int code = whole.wait(std::chrono::hours(24 * 365));
      sha256_ = whole.params_sha256();
      steps_ = whole.step();
      if (code != 0 || sha256_.empty()) {
        print_err("error: undisturbed, the program ends with code {} and {}:\n{}\n", code,
                  sha256_.empty() ? "leaves no checkpoint" : "its checkpoint", whole.said());
        return 1;
      }
    }
    bool good = true;
    if (!printing_.json)
      print_out("{:<20}{:>8}{:>9}{:>6}{:>11}{:>11}{:>13}{:>10}\n", "fault", "trials", "went on",
                "same", "p50 ms", "p99 ms", "steps twice", "restarts");
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Fault& fault : chosen) {
      const Row row = trials(fault);
      const bool row_good = row.good(fault.goes_on);
      good = good && row_good;
      if (printing_.json)
        rows.push_back({{"fault", row.fault},
                        {"trials", row.trials},
                        {"went_on", row.went_on},
                        {"hash_equal", row.same},
                        {"next_step_ms_p50", percentile(row.next_step_ms, 0.5)},
                        {"next_step_ms_p99", percentile(row.next_step_ms, 0.99)},
                        {"steps_done_twice_p50", percentile(row.twice, 0.5)},
                        {"restarts", row.restarts},
                        {"good", row_good},
                        {"trouble", row.trouble}});
      else
        print_out("{:<20}{:>8}{:>9}{:>6}{:>11.0f}{:>11.0f}{:>13.0f}{:>10}{}\n", row.fault,
                  row.trials, row.went_on, row.same, percentile(row.next_step_ms, 0.5),
                  percentile(row.next_step_ms, 0.99), percentile(row.twice, 0.5), row.restarts,
                  row_good ? "" : "  BAD " + row.trouble);
      std::fflush(stdout);
    }
    if (printing_.json) print_json(rows);
    return good ? 0 : 1;
  }

 private:
  Row trials(const Fault& fault) {
    Row row;
    row.fault = fault.name;
    for (std::int64_t k = 0; k < words_.trials; ++k) {
      const std::string folder = fmt::format("{}/{}-{}", words_.folder, fault.name, k);
      std::string trouble;
      {
        ChaosJob job(folder, words_.program, {"--max-restarts", "4"});
        trouble = trial(fault, job, row);
        if (!trouble.empty()) trouble += "; see " + folder;
      }
      if (row.trouble.empty()) row.trouble = trouble;
      std::error_code none;
      if (trouble.empty()) fs::remove_all(folder, none);
    }
    return row;
  }

  // What is wrong; empty: nothing.
  std::string trial(const Fault& fault, ChaosJob& job, Row& row) {
    // Any moment between the first checkpoint and the half of its steps.
    const std::uint64_t from = 1 + random_.below(std::max<std::uint64_t>(1, steps_ / 2));
    if (!job.wait_until([&] { return job.step() >= from && job.has_checkpoint(); }))
      return fmt::format("it did not get to step {} and a checkpoint: {}", from, job.said());
    ++row.trials;
    const std::uint64_t before = job.step();
    const auto moment = Clock::now();
    if (!fault.inject(job, random_)) return "the fault could not be injected";
    if (fault.goes_on) {
      // A life that goes on from a checkpoint shows its step.
      std::uint64_t lowest = job.step();
      if (job.wait_until([&] {
            lowest = std::min(lowest, job.step());
            return job.step() > before;
          }))
        row.next_step_ms.push_back(milliseconds_since(moment));
      row.twice.push_back(double(before - std::min(before, lowest)));
    }
    const int code = job.wait();
    row.went_on += code == 0;
    row.restarts += std::max<std::int64_t>(0, job.lives() - 1);
    const bool same = job.params_sha256() == sha256_;
    row.same += same;
    if (!fault.goes_on) {
      if (code == 0) return "the job went on";
      return job.said().find("without getting further") == std::string::npos
                 ? "the job did not say why it ended: " + job.said()
                 : std::string();
    }
    if (code == -1) return fmt::format("it did not end within {} s", kPatience.count());
    if (code != 0) return fmt::format("it ended with code {}: {}", code, job.said());
    return same ? std::string() : "the result is another one";
  }

  const ChaosWords& words_;
  const Printing& printing_;
  Random random_;
  std::string sha256_;
  std::uint64_t steps_ = 0;
};

int run_chaos(ChaosWords words, const Printing& printing) {
  const std::vector<Fault> all = faults();
  std::vector<Fault> chosen;
  std::vector<std::string> names;
  for (const Fault& fault : all) names.emplace_back(fault.name);
  for (const std::string& name : words.faults) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end())
      return report_usage(invalid_argument(fmt::format("there is no fault '{}': they are {}", name,
                                                       fmt::join(names, ", "))),
                          printing);
    chosen.push_back(all[std::size_t(it - names.begin())]);
  }
  if (chosen.empty()) chosen = all;
  if (words.seed == 0) words.seed = std::uint64_t(Clock::now().time_since_epoch().count());
  std::string made = fs::temp_directory_path() / "troupe-chaos-XXXXXX";
  if (words.folder.empty()) {
    if (mkdtemp(made.data()) == nullptr)
      return report_error(failed_precondition("cannot make a folder " + made), printing);
    words.folder = made;
  }
  if (!printing.json) print_out("seed {}, folder {}\n", words.seed, words.folder);
  const int code = Chaos(words, printing).run(chosen);
  std::error_code none;
  if (code == 0 && words.folder == made) fs::remove_all(made, none);
  return code;
}

}  // namespace

void add_chaos(CommandLine& line) {
  auto words = std::make_shared<ChaosWords>();
  Command c =
      line.command("chaos",
                   "Run a program again and again under troupe run, with a fault in each run, and "
                   "compare its result with that of a run without: troupe chaos -- PROGRAM [ARGS]");
  std::string names;
  for (const Fault& fault : faults())
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", fault.name, fault.about);
  c.option("--faults", words->faults, "faults, with commas between them (default: all): " + names)
      .list();
  c.option("--trials", words->trials, "runs for each fault (default: 5)").within(1, 10'000);
  c.option("--seed", words->seed, "seed of moments and processes (default: another each time)");
  c.option("--folder", words->folder, "folder for the jobs (default: a temporary one)");
  c.rest(words->program, "the program and its arguments");
  c.runs([words, &line] { return run_chaos(*words, line.printing()); });
}

}  // namespace troupe
