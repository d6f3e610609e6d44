// The programs `troupe` and `troupe-bench`, which is a part of it.
#pragma once

#include "apps/commands/command_line.hpp"

namespace troupe {

// What main() does. Where a master on this machine started the program as a worker, it becomes one.
// Else parses the command line with the commands that `add` adds, runs the chosen one, returns the
// exit code:
//   0 ok; 1 the command failed, or only its last checkpoint could not be written; 2 usage;
//   70 internal error; 75 temporary, run it again (a worker was lost); 143 stopped by SIGTERM and
//   130 by SIGINT: before the first step, or after a checkpoint.
// Results go to stdout, progress, warnings and errors to stderr. With --output json there is one
// document on stdout, of an error {"error", "code"}; of a line that cannot be parsed there is none.
// What stdout does not take is an error, what stderr does not take is left out (print.hpp).
int run_cli(int argc, char** argv, void (*add)(CommandLine&));

}  // namespace troupe
