// For programs whose processes a master starts as workers.
#pragma once

namespace troupe {

// A master starts workers on its own machine by running the program again with this argument. The
// program reads WorkerProcessOptions from the inherited descriptor, so the secret is in no argument
// list and no environment. When it makes its Session, it becomes the worker instead, and ends with
// it. A main() that should not run that far finds the argument by `worker_argument`, calls
// run_inherited_worker and returns its exit code: 0, 75 if the master was lost, else 1.
inline constexpr const char* kWorkerArgument = "--troupe-worker-fd=";
// In a process that a master started as a worker: works, then ends the process. Otherwise returns.
void become_worker_if_started_as_one();
int worker_argument(int argc, char** argv);  // the descriptor, or -1
int run_inherited_worker(int descriptor);

}  // namespace troupe
