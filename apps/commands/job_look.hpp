// A job under `troupe run`, as it looks from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "actors/processes/proc.hpp"
#include "core/status.hpp"

namespace troupe {

// A process of this machine, from /proc.
struct ProcessLook {
  pid_t pid = 0;
  ProcessStat stat;
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
  // The lives at the end of the log that a fault ended where one had ended the life before them:
  // faults came faster than checkpoints.
  std::int64_t no_further = 0;
  std::uint64_t step = 0;  // of the newest checkpoint when the last one ended
};
// not_found: no job has been in that folder.
Expected<LivesLook> read_lives(const std::string& folder);

// The sockets that processes of the job serve (actors/job/control_socket.hpp), by the numbers that
// these give themselves, which may be others in a container. Those of processes that are gone are
// removed.
std::vector<std::pair<pid_t, std::string>> control_sockets(const std::string& folder);

}  // namespace troupe
