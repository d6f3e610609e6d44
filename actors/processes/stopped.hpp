// Processes of this machine that their user stopped.
#pragma once

#include <sys/types.h>

namespace troupe {

// Whether the whole process is stopped, by SIGSTOP and the like or by a debugger. False if it does
// not exist or cannot be inspected.
bool is_stopped(pid_t process);

}  // namespace troupe
