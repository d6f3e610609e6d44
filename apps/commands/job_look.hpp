// A job under `troupe run`, as it looks from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "actors/processes/proc.hpp"
#include "core/status.hpp"

namespace troupe {

// A process of this machine, from /proc.
struct ProcessLook {
  pid_t pid = 0, parent = 0;
  char state = '?';  // R, S, D, T, Z
  std::uint64_t rss_bytes = 0;
  std::string command;
};

// The process and all below it, parents first. Empty: it is gone.
std::vector<ProcessLook> process_tree(pid_t pid);

// The supervisor that holds the lock of a job's folder; 0: nobody does.
pid_t supervisor_of(const std::string& folder);

// What the log of lives says.
struct LivesLook {
  std::int64_t lives = 0;
  std::string last_exit;  // of the life before, or of the last one
  std::string error;      // the report that it left
};
// not_found: no job has been in that folder.
Expected<LivesLook> read_lives(const std::string& folder);

}  // namespace troupe
