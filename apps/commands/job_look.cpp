#include "apps/commands/job_look.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "actors/job/job_folder.hpp"
#include "core/number.hpp"

namespace troupe {
namespace {

std::optional<ProcessLook> look_at(pid_t pid) {
  const std::string proc = fmt::format("/proc/{}/", pid);
  std::ifstream stat(proc + "stat");
  std::string text;
  if (!std::getline(stat, text)) return std::nullopt;
  // The name, in parentheses, may have any character.
  const std::size_t end = text.rfind(')');
  if (end == text.npos || end + 4 > text.size()) return std::nullopt;
  ProcessLook look;
  look.pid = pid;
  look.state = text[end + 2];
  look.parent = pid_t(std::atoi(text.c_str() + end + 4));
  std::uint64_t pages = 0, all = 0;
  if (std::ifstream(proc + "statm") >> all >> pages)
    look.rss_bytes = pages * std::uint64_t(sysconf(_SC_PAGESIZE));
  std::ifstream words(proc + "cmdline");
  for (std::string word; std::getline(words, word, '\0');)
    look.command += (look.command.empty() ? "" : " ") + word;
  return look;
}

}  // namespace

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> all;
  std::error_code gone;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) all.push_back(child);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<ProcessLook> process_tree(pid_t pid) {
  std::vector<ProcessLook> all;
  const auto look = look_at(pid);
  if (!look) return all;
  all.push_back(*look);
  for (const pid_t child : children_of(pid))
    for (ProcessLook& each : process_tree(child)) all.push_back(std::move(each));
  return all;
}

pid_t supervisor_of(const std::string& folder) {
  const std::string path = folder + "/" + JobFolder::kLock;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);  // which gives the lock back
  pid_t holder = 0;
  return held && std::ifstream(path) >> holder ? holder : 0;
}

Expected<LivesLook> read_lives(const std::string& folder) {
  const std::string path = folder + "/" + JobFolder::kLives;
  std::ifstream log(path);
  if (!log)
    return not_found(fmt::format("'{}' is no folder of a job: it has no lives.log", folder));
  LivesLook look;
  const auto text_of = [](const nlohmann::json& line, const char* key) {
    return line.contains(key) && line[key].is_string() ? line[key].get<std::string>()
                                                       : std::string();
  };
  for (std::string text; std::getline(log, text);) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) continue;  // cut by a full disk
    const std::string event = text_of(line, "event");
    if (event == "started") {
      if (line.contains("life") && line["life"].is_number_integer())
        look.lives = line["life"].get<std::int64_t>();
      if (line.contains("time") && line["time"].is_number_integer())
        look.began = line["time"].get<std::int64_t>();
    } else if (event == "ended") {
      look.last_exit = text_of(line, "how");
      look.error = line.contains("error") && line["error"].is_object()
                       ? text_of(line["error"], "report")
                       : std::string();
    } else if (event == "not started") {
      look.last_exit = text_of(line, "why");
      look.error.clear();
    }
  }
  return look;
}

}  // namespace troupe
