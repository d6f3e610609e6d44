// Processes of this machine, as the kernel shows them.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/processes/children.hpp"
#include "core/status.hpp"

namespace troupe {

// The processes that any thread of `pid` has started and that were not waited for, by ascending
// number. Empty: there are none, or `pid` is gone.
std::vector<pid_t> children_of(pid_t pid);

// What the kernel says of a process.
struct ProcessStat {
  char state = '?';  // R, S, D, T, Z
  pid_t parent = 0;
  // When it was started, in ticks since the machine was: with it a number names one process for
  // good.
  std::uint64_t start = 0;
  std::uint64_t cpu = 0;       // ticks that it has run, in its own code and the kernel's
  std::uint64_t resident = 0;  // pages
  // As a whole, by SIGSTOP and the like or by a debugger.
  bool stopped() const { return state == 'T' || state == 't'; }
};
// Nothing: there is none, or it cannot be inspected.
std::optional<ProcessStat> stat_of(pid_t pid);
// The same, from the text of /proc/PID/stat.
std::optional<ProcessStat> parse_stat(std::string_view text);

// 0: there is none.
std::uint64_t start_of(pid_t pid);

// A variable of the environment that the process was started with, as far as it has not written
// over that. Nothing: there is none, or it cannot be read.
std::optional<std::string> variable_of(pid_t pid, std::string_view name);

// A path by which a process's program can be run once more: that of its file, or `link`, its
// /proc/PID/exe, if the file was removed or replaced since. Error: the process is gone, or another
// user's.
Expected<std::string> program_of(const std::string& link);

// Waits for a child's end, as waitid() names it; code -1 if it was waited for elsewhere.
ChildEnd wait_for_end(idtype_t type, id_t id);

}  // namespace troupe
