#include "apps/commands/job_status.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "actors/job/control_socket.hpp"
#include "actors/job/job_folder.hpp"
#include "actors/job/pace.hpp"
#include "apps/commands/job_look.hpp"
#include "core/coarse_clock.hpp"

namespace troupe {
namespace {

// Seconds since the checkpoint was written, 0 if the clock was set back since; negative: there is
// none.
double age_of(const std::string& checkpoint) {
  std::error_code none;
  const auto written = std::filesystem::last_write_time(checkpoint, none);
  if (checkpoint.empty() || none) return -1;
  const std::chrono::duration<double> age = std::filesystem::file_time_type::clock::now() - written;
  return std::max(age.count(), 0.0);
}

const char* words_of(const ProcessStat& stat) {
  if (stat.stopped()) return "stopped";
  switch (stat.state) {
    case 'D':
      return "waits for the disk";
    case 'Z':
      return "has ended";
    default:
      return "runs";
  }
}

// What a person should know first: what is stopped, full, cut, or going in circles.
nlohmann::ordered_json problems_of(const nlohmann::ordered_json& job, const LivesLook& lives) {
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  for (const auto& process : job["processes"])
    if (process["state"] == "stopped")
      problems.push_back(fmt::format("process {} ({}) is stopped: SIGCONT lets it go on",
                                     process["pid"].get<pid_t>(),
                                     process["command"].get<std::string>().substr(0, 60)));
  for (const auto& program : job["programs"]) {
    if (const std::string why = text_in(program, "error"); !why.empty())
      problems.push_back(fmt::format("process {} cannot be asked what it does: {}",
                                     program["process"].get<pid_t>(), why));
    if (program.contains("notes") && program["notes"].is_object())
      for (const auto& [name, text] : program["notes"].items())
        if (text.is_string()) problems.push_back(text.get<std::string>());
    std::set<std::string> silent;
    for_each_wait(program, [&](const nlohmann::ordered_json& wait, const std::string&) {
      const std::string on = text_in(wait, "on");
      if (on == "task" && silent.insert(text_in(wait, "task")).second)
        problems.push_back(text_in(wait, "task") +
                           " does not answer: it is stopped, hangs, or its link is cut");
    });
  }
  if (lives.no_further >= 2)
    problems.push_back(fmt::format(
        "faults come faster than checkpoints: the last {} lives ended without one that is newer "
        "than that of step {}; write checkpoints more often (--checkpoint-every)",
        lives.no_further + 1, lives.step));
  return problems;
}

}  // namespace

std::string text_in(const nlohmann::ordered_json& json, const char* field) {
  const auto at = json.is_object() ? json.find(field) : json.end();
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}

nlohmann::ordered_json ask_programs(const std::string& folder, std::string_view question,
                                    int answer_within_ms) {
  nlohmann::ordered_json programs = nlohmann::ordered_json::array();
  for (const auto& [pid, path] : control_sockets(folder)) {
    nlohmann::ordered_json program = {{"process", pid}};
    const auto look = process_tree(pid);
    const bool stopped = !look.empty() && look.front().stat.stopped();
    auto said = stopped ? unavailable("it is stopped")
                        : ask_control_socket(path, question, answer_within_ms);
    if (!look.empty()) {
      program["state"] = words_of(look.front().stat);
      program["command"] = look.front().command;
    }
    if (!said.ok())
      program["error"] = said.status().message();
    else
      for (const char* field : {"sessions", "notes", "figures", "error"})
        if (said->contains(field)) program[field] = (*said)[field];
    programs.push_back(std::move(program));
  }
  return programs;
}

Expected<nlohmann::ordered_json> status_of_job(const std::string& folder,
                                               const JobStatusOptions& options) {
  TROUPE_TRY(const LivesLook lives, read_lives(folder));
  const pid_t supervisor = supervisor_of(folder);
  nlohmann::ordered_json job = {
      {"folder", folder}, {"state", supervisor != 0 ? "running" : "over"}, {"lives", lives.lives}};
  if (!lives.last_exit.empty()) job["last_exit"] = lives.last_exit;
  if (!lives.error.empty()) job["error"] = lives.error;
  if (const auto page = ProgressPage::read(folder)) {
    job["step"] = (*page)->step.load();
    job["steps"] = (*page)->until.load();
    job["recoveries"] = (*page)->recoveries.load();
    job["process"] = (*page)->process.load();
    if (supervisor != 0) {
      const std::int64_t idle_ms =
          coarse_now_ns() / 1'000'000 - std::int64_t((*page)->moved_ms.load());
      job["seconds_since_step"] = double(std::max<std::int64_t>(idle_ms, 0)) / 1e3;
      if (const double speed = Pace::per_second((*page)->pace, idle_ms); speed > 0)
        job["steps_per_second"] = speed;
    }
  }
  const JobFolder::Position position = JobFolder::position(folder);
  if (!position.checkpoint.empty())
    job["checkpoint"] = {{"path", position.checkpoint},
                         {"step", position.step},
                         {"age_seconds", age_of(position.checkpoint)}};
  nlohmann::ordered_json processes = nlohmann::ordered_json::array();
  std::map<pid_t, int> depth;  // below the supervisor
  if (supervisor != 0)
    for (const ProcessLook& each : process_tree(supervisor))
      processes.push_back(
          {{"pid", each.pid},
           {"parent", each.stat.parent},
           {"depth",
            depth[each.pid] = depth.contains(each.stat.parent) ? depth[each.stat.parent] + 1 : 0},
           {"state", words_of(each.stat)},
           {"rss_bytes", each.rss_bytes},
           {"command", each.command}});
  job["processes"] = processes;
  job["programs"] = supervisor != 0
                        ? ask_programs(folder, ControlSocket::kStatus, options.answer_within_ms)
                        : nlohmann::ordered_json::array();
  job["problems"] = problems_of(job, lives);
  return job;
}

}  // namespace troupe
