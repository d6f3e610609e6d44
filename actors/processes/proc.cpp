#include "actors/processes/proc.hpp"

#include <fmt/format.h>

#include <algorithm>
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

std::uint64_t start_of(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  // Behind the name, in parentheses, which may have any character; the field is the 22nd.
  const std::size_t name = text.rfind(')');
  if (name == text.npos) return 0;
  std::string_view rest = std::string_view(text).substr(name + 1);
  for (int field = 2; field < 22; ++field)
    rest.remove_prefix(std::min(rest.find(' '), rest.size() - 1) + 1);
  return parse_number<std::uint64_t>(rest.substr(0, rest.find(' '))).value_or(0);
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
