// Processes of this machine that their user stopped.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace troupe {

// Whether the whole process is stopped, by SIGSTOP and the like or by a debugger. False if it does
// not exist or cannot be inspected.
bool is_stopped(pid_t process);

// The same, from the text of /proc/PID/stat.
bool says_stopped(std::string_view stat);

}  // namespace troupe
