// What a program whose processes a master starts as workers has to know.
#pragma once

namespace troupe {

// How a master starts workers on its own machine: the program is run again with this argument and
// reads WorkerProcessOptions from the inherited descriptor, so that the secret is in no argument
// list and no environment. Where such a program makes its Session it becomes the worker instead,
// and ends with it; a main() that would rather not come so far finds the argument by
// `worker_argument`, calls run_inherited_worker and returns its exit code: 0, 75 when the master
// was lost, else 1.
inline constexpr const char* kWorkerArgument = "--troupe-worker-fd=";
// In a process that a master started as a worker: works, and ends the process. Else returns.
void become_worker_if_started_as_one();
int worker_argument(int argc, char** argv);  // the descriptor, or -1
int run_inherited_worker(int descriptor);

}  // namespace troupe
