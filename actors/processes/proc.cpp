#include "actors/processes/proc.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "core/number.hpp"

namespace troupe {

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

// "PID (NAME) STATE PARENT ...", where the name may have any characters in it. The 14th and 15th
// fields are times, the 22nd is the start, the 24th the memory.
std::optional<ProcessStat> parse_stat(std::string_view text) {
  const std::size_t name = text.rfind(") ");
  if (name == text.npos || name + 2 >= text.size()) return std::nullopt;
  ProcessStat stat;
  stat.state = text[name + 2];
  int field = 3;
  for (std::size_t at = name + 2; field <= 24; ++field) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (field == 4) stat.parent = parse_number<pid_t>(word).value_or(0);
    if (field == 14 || field == 15) stat.cpu += parse_number<std::uint64_t>(word).value_or(0);
    if (field == 24) stat.resident = parse_number<std::uint64_t>(word).value_or(0);
    if (field == 22) stat.start = parse_number<std::uint64_t>(word).value_or(0);
    if (end == text.size()) break;
    at = end + 1;
  }
  return stat;
}

// Without memory, and by one read: it is called while a peer is silent.
std::optional<ProcessStat> stat_of(pid_t pid) {
  std::array<char, 32> path;
  *fmt::format_to_n(path.begin(), path.size() - 1, "/proc/{}/stat", pid).out = '\0';
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t n = ::read(file, text.data(), text.size());
  ::close(file);
  if (n <= 0) return std::nullopt;
  return parse_stat({text.data(), std::size_t(n)});
}

std::optional<std::string> variable_of(pid_t pid, std::string_view name) {
  std::ifstream environment(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  for (std::string each; std::getline(environment, each, '\0');)
    if (each.size() > name.size() && each.starts_with(name) && each[name.size()] == '=')
      return each.substr(name.size() + 1);
  return std::nullopt;
}

Expected<std::string> program_of(const std::string& link) {
  std::error_code none;
  const std::string path = std::filesystem::read_symlink(link, none).string();
  if (path.empty())
    return failed_precondition(fmt::format("cannot read '{}': {}", link, none.message()));
  return std::filesystem::equivalent(path, link, none) ? path : link;
}

std::uint64_t start_of(pid_t pid) {
  const auto stat = stat_of(pid);
  return stat ? stat->start : 0;
}

ChildEnd wait_for_end(idtype_t type, id_t id) {
  siginfo_t info{};
  int error = 0;
  do error = waitid(type, id, &info, WEXITED);
  while (error != 0 && errno == EINTR);
  ChildEnd end;
  if (error != 0)
    end.code = -1;
  else if (info.si_code == CLD_EXITED)
    end.code = info.si_status;
  else
    end.signal = info.si_status;
  return end;
}

}  // namespace troupe
