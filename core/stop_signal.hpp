// SIGTERM and SIGINT, which ask a process to end in order.
#pragma once

namespace troupe {

// A handler for both. The first signal is kept; a second SIGINT ends the process at once. A second
// SIGTERM does not: whoever ends a whole group of processes, as `kill %1` and systemd do, reaches a
// program directly and through its supervisor.
void on_stop_signal(int signal);

// The first signal; 0: there was none.
int stop_signal();
// Before a handler is set anew.
void forget_stop_signal();

// How shells tell of a process that a signal has ended.
constexpr int exit_code_of_signal(int signal) { return 128 + signal; }

}  // namespace troupe
