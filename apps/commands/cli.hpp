// The `troupe` command.
#pragma once

namespace troupe {

// Parses the command line, runs the command, returns the exit code:
//   0 ok; 1 the command failed, or only its last checkpoint could not be written; 2 usage;
//   70 internal error; 75 temporary, run it again (a worker was lost); 143 stopped by SIGTERM and
//   130 by SIGINT: before the first step, or after a checkpoint.
// Results go to stdout (--output json: one document), progress and errors to stderr.
int run_cli(int argc, char** argv);

}  // namespace troupe
