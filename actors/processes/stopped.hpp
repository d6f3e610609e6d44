// Processes of this machine that their user stopped.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace troupe {

// Whether all that runs in the process stands still, by SIGSTOP and the like or for a debugger.
// False for one that does not exist, or that nothing can be learned of.
bool is_stopped(pid_t process);

// The same of the text of /proc/PID/stat.
bool says_stopped(std::string_view stat);

}  // namespace troupe
