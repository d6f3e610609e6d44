#include "actors/processes/stopped.hpp"

#include "actors/processes/proc.hpp"

namespace troupe {

bool is_stopped(pid_t process) {
  const auto stat = stat_of(process);
  return stat && stat->stopped();
}

}  // namespace troupe
