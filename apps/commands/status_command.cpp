// troupe status, troupe list: what goes on in jobs under troupe run.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/job/job_folder.hpp"
#include "apps/commands/command_line.hpp"
#include "apps/commands/job_look.hpp"
#include "apps/commands/print.hpp"
#include "core/number.hpp"
#include "serialization/checkpoint.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kMeasure{500};  // of the step rate

// Seconds since the checkpoint was written; negative: there is none.
double age_of(const std::string& checkpoint) {
  std::error_code none;
  const auto written = std::filesystem::last_write_time(checkpoint, none);
  if (checkpoint.empty() || none) return -1;
  return std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written)
      .count();
}

const char* words_of(char state) {
  switch (state) {
    case 'T':
    case 't':
      return "stopped";
    case 'D':
      return "waits for the disk";
    case 'Z':
      return "has ended";
    default:
      return "runs";
  }
}

Expected<nlohmann::ordered_json> look_at(const std::string& folder) {
  TROUPE_TRY(const LivesLook lives, read_lives(folder));
  const pid_t supervisor = supervisor_of(folder);
  nlohmann::ordered_json job = {
      {"folder", folder}, {"state", supervisor != 0 ? "running" : "over"}, {"lives", lives.lives}};
  if (!lives.last_exit.empty()) job["last_exit"] = lives.last_exit;
  if (!lives.error.empty()) job["error"] = lives.error;
  if (const auto page = ProgressPage::read(folder)) {
    const std::uint64_t step = (*page)->step;
    job["step"] = step;
    job["steps"] = (*page)->until.load();
    job["recoveries"] = (*page)->recoveries.load();
    if (supervisor != 0) {
      std::this_thread::sleep_for(kMeasure);
      const std::uint64_t later = (*page)->step;
      job["steps_per_second"] =
          later > step ? double(later - step) / std::chrono::duration<double>(kMeasure).count() : 0;
    }
  }
  const JobFolder::Position position = JobFolder::position(folder);
  if (!position.checkpoint.empty())
    job["checkpoint"] = {{"path", position.checkpoint},
                         {"step", position.step},
                         {"age_seconds", age_of(position.checkpoint)}};
  nlohmann::ordered_json processes = nlohmann::ordered_json::array();
  if (supervisor != 0)
    for (const ProcessLook& each : process_tree(supervisor))
      processes.push_back({{"pid", each.pid},
                           {"parent", each.parent},
                           {"state", words_of(each.state)},
                           {"rss_bytes", each.rss_bytes},
                           {"command", each.command}});
  job["processes"] = processes;
  return job;
}

std::string text_of(const nlohmann::ordered_json& job) {
  std::string text = fmt::format("job       {}: {}", job["folder"].get<std::string>(),
                                 job["state"].get<std::string>());
  if (job.contains("step")) {
    text += fmt::format(", step {}", job["step"].get<std::uint64_t>());
    if (job["steps"].get<std::uint64_t>() > 0)
      text += fmt::format("/{}", job["steps"].get<std::uint64_t>());
    if (job.contains("steps_per_second"))
      text += fmt::format(", {:.1f} steps/s", job["steps_per_second"].get<double>());
  }
  text += fmt::format("\nlives     {}", job["lives"].get<std::int64_t>());
  if (job.contains("recoveries") && job["recoveries"].get<std::uint64_t>() > 0)
    text += fmt::format(", {} lost workers in this one", job["recoveries"].get<std::uint64_t>());
  if (job.contains("last_exit"))
    text += fmt::format("; the last one that ended {}", job["last_exit"].get<std::string>());
  text += "\n";
  if (job.contains("error")) text += fmt::format("error     {}\n", job["error"].get<std::string>());
  if (job.contains("checkpoint")) {
    const auto& checkpoint = job["checkpoint"];
    const double age = checkpoint["age_seconds"].get<double>();
    text += fmt::format("checkpoint  step {}, ", checkpoint["step"].get<std::uint64_t>());
    text += age < 0 ? "gone" : fmt::format("{:.1f} s old", age);
    text += fmt::format(": {}\n", checkpoint["path"].get<std::string>());
  }
  for (const auto& each : job["processes"])
    text +=
        fmt::format("process   {:>8} {:<8} {:>8.1f} MiB  {}\n", each["pid"].get<pid_t>(),
                    each["state"].get<std::string>(), each["rss_bytes"].get<double>() / (1 << 20),
                    each["command"].get<std::string>().substr(0, 120));
  return text;
}

struct StatusWords {
  std::string folder = "troupe-job";
  bool watch = false;
};

int run_status(const StatusWords& words, const Printing& printing) {
  for (;;) {
    const auto job = look_at(words.folder);
    if (!job.ok()) return report_error(job.status(), printing);
    if (printing.json)
      print_json(*job);
    else
      print_out("{}{}", words.watch ? "\n" : "", text_of(*job));
    if (!words.watch || (*job)["state"] == "over") return 0;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

// Those whose supervisors this user may look at.
int run_list(const Printing& printing) {
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const auto pid = parse_number<pid_t>(entry.path().filename().string());
    if (!pid) continue;
    // A supervisor has the lock of its folder open.
    std::error_code closed;
    for (const auto& descriptor :
         std::filesystem::directory_iterator(entry.path() / "fd", closed)) {
      std::error_code gone;
      const auto file = std::filesystem::read_symlink(descriptor, gone);
      if (gone || file.filename() != JobFolder::kLock) continue;
      const std::string folder = file.parent_path();
      if (supervisor_of(folder) != *pid) continue;
      const auto lives = read_lives(folder);
      if (!lives.ok()) continue;
      const JobFolder::Position position = JobFolder::position(folder);
      jobs.push_back({{"folder", folder},
                      {"supervisor", *pid},
                      {"lives", lives->lives},
                      {"checkpoint_step", position.step}});
    }
  }
  if (printing.json) {
    print_json(jobs);
    return 0;
  }
  for (const auto& job : jobs)
    print_out("{}  pid {}, life {}, checkpoint of step {}\n", job["folder"].get<std::string>(),
              job["supervisor"].get<int>(), job["lives"].get<std::int64_t>(),
              job["checkpoint_step"].get<std::uint64_t>());
  return 0;
}

}  // namespace

void add_status(CommandLine& line) {
  auto words = std::make_shared<StatusWords>();
  Command c = line.command("status", "Show what goes on in a job under troupe run");
  c.option("job", words->folder, "folder of the job (default: troupe-job)");
  c.flag("--watch", words->watch, "show it again every second until the job is over");
  c.runs([words, &line] { return run_status(*words, line.printing()); });
  Command list = line.command("list", "List the jobs that troupe run keeps running");
  list.runs([&line] { return run_list(line.printing()); });
}

}  // namespace troupe
