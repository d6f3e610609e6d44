// troupe status, troupe why-blocked, troupe list: what goes on in jobs under troupe run.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "actors/job/control_socket.hpp"
#include "actors/job/job_folder.hpp"
#include "apps/commands/command_line.hpp"
#include "apps/commands/job_look.hpp"
#include "apps/commands/job_status.hpp"
#include "apps/commands/print.hpp"
#include "core/number.hpp"

namespace troupe {
namespace {

std::string text_of(const nlohmann::ordered_json& job) {
  std::string text = fmt::format("job       {}: {}", job["folder"].get<std::string>(),
                                 job["state"].get<std::string>());
  if (job.contains("step")) {
    text += fmt::format(", step {}", job["step"].get<std::uint64_t>());
    if (job["steps"].get<std::uint64_t>() > 0)
      text += fmt::format("/{}", job["steps"].get<std::uint64_t>());
    if (job.contains("steps_per_second")) {
      const double speed = job["steps_per_second"].get<double>();
      text += speed < 10 ? fmt::format(", {:.3g} steps/s", speed)
                         : fmt::format(", {:.1f} steps/s", speed);
    }
    if (job.contains("seconds_since_step") && job["seconds_since_step"].get<double>() >= 2)
      text += fmt::format(", none since {:.0f} s", job["seconds_since_step"].get<double>());
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
  for (const auto& problem : job["problems"])
    text += fmt::format("problem   {}\n", problem.get<std::string>());
  for (const auto& program : job["programs"])
    for_each_wait(program, [&](const nlohmann::ordered_json& wait, const std::string& whose) {
      if (wait.contains("seconds") && wait["seconds"].is_number() &&
          wait["seconds"].get<double>() >= 1)
        text += fmt::format("waits     {}{}\n", whose, text_in(wait, "text"));
    });
  for (const auto& each : job["processes"])
    text +=
        fmt::format("process   {:>8} {:<8} {:>8.1f} MiB  {}{}\n", each["pid"].get<pid_t>(),
                    each["state"].get<std::string>(), each["rss_bytes"].get<double>() / (1 << 20),
                    std::string(2 * std::size_t(each["depth"].get<int>()), ' '),
                    each["command"].get<std::string>().substr(0, 120));
  return text;
}

struct StatusWords {
  std::string folder = "troupe-job";
  bool watch = false;
};

int run_status(const StatusWords& words, const Printing& printing) {
  for (;;) {
    const auto job = status_of_job(words.folder, {});
    if (!job.ok()) return report_error(job.status(), printing);
    if (printing.json)
      print_json(*job);
    else
      print_out("{}{}", words.watch ? "\n" : "", text_of(*job));
    if (!words.watch || (*job)["state"] == "over") return 0;
    if (std::fflush(stdout) != 0) return 1;  // nobody reads it any more
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

std::string blocked_text(const nlohmann::ordered_json& job) {
  std::string text;
  for (const auto& program : job["programs"]) {
    text += fmt::format("process {} ({})", program["process"].get<pid_t>(),
                        text_in(program, "command").substr(0, 80));
    if (const std::string why = text_in(program, "error"); !why.empty()) {
      text += fmt::format(": {}\n", why);
      continue;
    }
    std::string lines;
    for_each_wait(program, [&](const nlohmann::ordered_json& wait, const std::string& whose) {
      lines += "  " + whose + text_in(wait, "text") + "\n";
    });
    if (program.contains("sessions") && program["sessions"].is_array())
      for (const auto& session : program["sessions"])
        if (const std::string why = text_in(session, "error"); !why.empty())
          lines += "  a session cannot say what it waits for: " + why + "\n";
    if (lines.empty())
      text += ": no run is under way; the program itself computes, or waits for something else";
    text += (lines.empty() ? "" : ":") + ("\n" + lines);
  }
  return text.empty() ? "no process of the job can be asked: it has no session yet, or is over\n"
                      : text;
}

int run_why_blocked(const std::string& folder, const Printing& printing) {
  if (const auto lives = read_lives(folder); !lives.ok())
    return report_error(lives.status(), printing);
  nlohmann::ordered_json job = {{"folder", folder},
                                {"programs", ask_programs(folder, ControlSocket::kWaits,
                                                          JobStatusOptions{}.answer_within_ms)}};
  if (printing.json)
    print_json(job);
  else
    print_out("{}", blocked_text(job));
  return 0;
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
  auto blocked = std::make_shared<std::string>("troupe-job");
  Command why = line.command(
      "why-blocked", "Show what every run of a job waits for: node, line, queue, worker, how long");
  why.option("job", *blocked, "folder of the job (default: troupe-job)");
  why.runs([blocked, &line] { return run_why_blocked(*blocked, line.printing()); });
  Command list = line.command("list", "List the jobs that troupe run keeps running");
  list.runs([&line] { return run_list(line.printing()); });
}

}  // namespace troupe
