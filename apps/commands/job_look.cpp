#include "apps/commands/job_look.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "actors/job/control_socket.hpp"
#include "actors/job/job_folder.hpp"
#include "actors/processes/proc.hpp"
#include "core/number.hpp"
#include "serialization/file.hpp"

namespace troupe {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::optional<ProcessLook> look_at(pid_t pid) {
  const auto stat = stat_of(pid);
  if (!stat) return std::nullopt;
  const std::string proc = fmt::format("/proc/{}/", pid);
  ProcessLook look;
  look.pid = pid;
  look.stat = *stat;
  std::uint64_t pages = 0, all = 0;
  if (std::ifstream(proc + "statm") >> all >> pages)
    look.rss_bytes = pages * std::uint64_t(sysconf(_SC_PAGESIZE));
  std::ifstream words(proc + "cmdline");
  for (std::string word; std::getline(words, word, '\0');)
    look.command += (look.command.empty() ? "" : " ") + word;
  return look;
}

// The end of a file that anybody may have put there; nothing for what is no file.
std::string text_of_file(const std::string& path) {
  constexpr std::uint64_t kMost = 16 << 20;
  const auto file = disk().open(path);
  if (!file.ok()) return {};
  const std::uint64_t size = (*file)->size();
  std::vector<std::byte> end(std::min(size, kMost));
  if (!(*file)->read_at(size - end.size(), end).ok()) return {};
  return {reinterpret_cast<const char*>(end.data()), end.size()};
}

}  // namespace

std::vector<ProcessLook> process_tree(pid_t pid) {
  std::vector<ProcessLook> all;
  const auto look = look_at(pid);
  if (!look) return all;
  all.push_back(*look);
  for (const pid_t child : children_of(pid))
    for (ProcessLook& each : process_tree(child)) all.push_back(std::move(each));
  return all;
}

// Who took the lock wrote down its number and start. To try the lock would keep a supervisor from
// it. In a container it has another number there than here, which the kernel's list knows; but the
// list names who took a lock that its children have now, and on btrfs another device than stat()
// does.
pid_t supervisor_of(const std::string& folder) {
  const std::string path = folder + "/" + JobFolder::kLock, holder = text_of_file(path);
  const auto noted = words_of(std::string_view(holder).substr(0, holder.find('\n')));
  if (noted.size() != 2) return 0;
  const auto start = parse_number<std::uint64_t>(noted[1]).value_or(0);
  const auto is_it = [&](pid_t pid) { return pid > 0 && start != 0 && start_of(pid) == start; };
  if (const auto pid = parse_number<pid_t>(noted[0]).value_or(0); is_it(pid)) return pid;
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return 0;
  const std::string wanted =
      fmt::format("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    // 1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF
    const auto words = words_of(line);
    if (words.size() < 6 || words[1] != "FLOCK" || words[5] != wanted) continue;
    const pid_t pid = parse_number<pid_t>(words[4]).value_or(0);
    return is_it(pid) ? pid : 0;
  }
  return 0;
}

Expected<LivesLook> read_lives(const std::string& folder) {
  const std::string path = folder + "/" + JobFolder::kLives;
  const std::string log = text_of_file(path);
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none))
    return not_found(fmt::format("'{}' is no folder of a job: it has no lives.log", folder));
  LivesLook look;
  std::optional<std::uint64_t> before;  // the step at which the life before ended by a fault
  const auto text_of = [](const nlohmann::json& line, const char* key) {
    return line.contains(key) && line[key].is_string() ? line[key].get<std::string>()
                                                       : std::string();
  };
  for (std::size_t at = 0, end = 0; at < log.size(); at = end + 1) {
    end = std::min(log.find('\n', at), log.size());
    const auto line = nlohmann::json::parse(log.substr(at, end - at), nullptr, false);
    if (!line.is_object()) continue;  // cut by a full disk
    const std::string event = text_of(line, "event");
    if (event == "started") {
      if (line.contains("life") && line["life"] == 1)  // of another troupe run
        before.reset(), look.no_further = 0;
      if (line.contains("life") && line["life"].is_number_integer())
        look.lives = line["life"].get<std::int64_t>();
    } else if (event == "ended") {
      look.last_exit = text_of(line, "how");
      if (line.contains("step") && line["step"].is_number_unsigned()) {
        const auto step = line["step"].get<std::uint64_t>();
        look.no_further = before == step ? look.no_further + 1 : 0;
        look.step = step;
        before = step;
      }
      if (line.contains("fault") && line["fault"] == false) {  // its own word
        look.no_further = 0;
        before.reset();
      }
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

std::vector<std::pair<pid_t, std::string>> control_sockets(const std::string& folder) {
  std::vector<std::pair<pid_t, std::string>> all;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(ControlSocket::kPrefix)) continue;
    const auto pid =
        parse_number<pid_t>(std::string_view(name).substr(std::strlen(ControlSocket::kPrefix)));
    if (!pid || *pid <= 0) continue;
    // One in a container has another number here, or none.
    if (kill(*pid, 0) != 0 && errno == ESRCH && !is_served(entry.path()))
      unlink(entry.path().c_str());
    else
      all.emplace_back(*pid, entry.path().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace troupe
