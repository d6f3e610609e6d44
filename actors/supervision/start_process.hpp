// Starts another program.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "core/status.hpp"

namespace troupe {

struct StartOptions {
  std::string input = {};  // a file that is its standard input; empty: that of this process
  bool own_group = false;  // of processes
  bool no_hangup = false;  // SIGHUP is ignored, as under nohup
};

// Runs command[0], searched for as a shell does, with the rest as its arguments, the environment of
// this process and these variables. It gets SIGTERM when the calling thread ends before it, and has
// no signal blocked; SIGPIPE and SIGXFSZ are ignored only if they were when the calling process was
// started. Returns when it runs. not_found, failed_precondition: it cannot be run.
// resource_exhausted: no room for another process. Any thread.
//
// REQUIRES: a command of at least one word.
Expected<pid_t> start_process(const std::vector<std::string>& command,
                              const std::vector<std::pair<std::string, std::string>>& environment,
                              const StartOptions& options = {});

}  // namespace troupe
