#include "apps/chaos/faults.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>

namespace troupe {

std::vector<Fault> faults() {
  std::vector<Fault> all = process_faults();
  for (auto&& more : {link_faults(), file_faults()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

Status send_signal(pid_t process, int number) {
  if (process > 0 && kill(process, number) == 0) return ok_status();
  return failed_precondition(process > 0
                                 ? fmt::format("process {}: {}", process, std::strerror(errno))
                                 : std::string("there is no such process"));
}

pid_t any_of(const std::vector<pid_t>& processes, Random& random) {
  return processes.empty() ? 0 : processes[random.below(processes.size())];
}

}  // namespace troupe
