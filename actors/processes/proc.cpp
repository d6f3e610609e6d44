#include "actors/processes/proc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

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
