#include "apps/chaos/chaos_job.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "actors/supervision/start_process.hpp"
#include "apps/commands/job_look.hpp"

namespace troupe {

namespace {
constexpr std::chrono::milliseconds kLook{1};  // between looks at a job's progress
}

void pause_for(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

ChaosJob::ChaosJob(std::string folder, const std::vector<std::string>& program,
                   const Options& options)
    : folder_(std::move(folder)) {
  namespace fs = std::filesystem;
  fs::create_directories(folder_);
  const std::string here = fs::read_symlink("/proc/self/exe");
  std::vector<std::string> command = {
      "sh",    "-c", "cd=$0; exec \"$@\" > \"$cd/out\" 2> \"$cd/err\"", folder_, here, "run",
      "--job", job()};
  command.insert(command.end(), options.run.begin(), options.run.end());
  command.emplace_back("--");
  command.insert(command.end(), program.begin(), program.end());
  if (options.hold_syncs) {
    syncs_ = value_or_throw(FailingSyncs::start(command));
    supervisor_ = syncs_->pid();
  } else {
    supervisor_ = value_or_throw(start_process(command, {}));
  }
}

ChaosJob::~ChaosJob() {
  for (Beside& each : beside_) each.thread.request_stop();
  if (!end_) {
    for (const ProcessLook& each : process_tree(supervisor_)) kill(each.pid, SIGKILL);
    (void)waitpid(supervisor_, nullptr, 0);
  }
  beside_.clear();
}

pid_t ChaosJob::program() const {
  const auto all = children_of(supervisor_);
  return all.empty() ? 0 : all.front();
}

std::vector<pid_t> ChaosJob::workers() const {
  const pid_t there = program();
  return there == 0 ? std::vector<pid_t>() : children_of(there);
}

std::vector<pid_t> ChaosJob::all() const {
  std::vector<pid_t> all = workers();
  if (const pid_t there = program(); there > 0) all.insert(all.begin(), there);
  return all;
}

std::uint64_t ChaosJob::step() {
  if (!page_) page_ = ProgressPage::read(job());
  return page_ ? (*page_)->step.load() : 0;
}

std::uint64_t ChaosJob::recoveries() {
  if (!page_) page_ = ProgressPage::read(job());
  return page_ ? (*page_)->recoveries.load() : 0;
}

std::int64_t ChaosJob::lives() const {
  const auto look = read_lives(job());
  return look.ok() ? look->lives : 0;
}

std::string ChaosJob::tensors_sha256() const {
  std::ifstream manifest(JobFolder::position(job()).checkpoint + "/manifest.json");
  const auto json = nlohmann::json::parse(manifest, nullptr, false);
  return json.is_object() && json.contains("tensors_sha256") && json["tensors_sha256"].is_string()
             ? json["tensors_sha256"].get<std::string>()
             : std::string();
}

std::string ChaosJob::said() const {
  std::ifstream file(folder_ + "/err");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 500));
}

std::optional<int> ChaosJob::end() {
  int status = 0;
  if (!end_ && waitpid(supervisor_, &status, WNOHANG) == supervisor_)
    end_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end_;
}

bool ChaosJob::wait_until(const std::function<bool()>& there) {
  for (const auto until = Clock::now() + kPatience; Clock::now() < until;) {
    if (there()) return true;
    if (end()) return false;
    std::this_thread::sleep_for(kLook);
  }
  return false;
}

int ChaosJob::wait(Clock::duration patience) {
  for (const auto until = Clock::now() + patience; !end() && Clock::now() < until;)
    std::this_thread::sleep_for(kLook);
  return end().value_or(-1);
}

void ChaosJob::meanwhile(std::function<void(const std::stop_token&)> doing) {
  std::erase_if(beside_, [](const Beside& each) { return each.over->load(); });
  auto over = std::make_shared<std::atomic<bool>>(false);
  beside_.push_back({over, std::jthread([=](const std::stop_token& stop) {
                       doing(stop);
                       *over = true;
                     })});
}

}  // namespace troupe
