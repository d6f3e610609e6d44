// The workers that a supervisor keeps beside its program.
#pragma once

#include <string>
#include <vector>

#include "actors/supervision/process_supervisor.hpp"
#include "core/status.hpp"

namespace troupe {

struct KeptWorkers {
  int local = 0;                   // on this machine
  int spares = 0;                  // of them all: they wait to replace lost ones
  std::vector<std::string> hosts;  // one on each, by `ssh`
  std::vector<std::string> ssh = {"ssh"};
  std::string troupe;       // the program of local ones; those of hosts run "troupe"
  std::string listen;       // HOST:PORT of the program
  std::string secret_file;  // which those of hosts get on their standard input

  int count() const { return local + int(hosts.size()); }
  // Children "worker-0", "worker-1", ... They are always started again. They are in process groups
  // of their own, so that signals of the terminal do not end them: the program needs them for its
  // last checkpoint.
  std::vector<ProcessSpec> specs() const;
  // The program's command with the options that describe them, before a "--" of its own.
  std::vector<std::string> tell(std::vector<std::string> command) const;
};

// The hosts in a file: lists as hosts_of() in actors/processes/launch.hpp reads them, one a line;
// empty lines, and all after '#', are left out. invalid_argument names the line.
Expected<std::vector<std::string>> read_hosts(const std::string& path);

}  // namespace troupe
