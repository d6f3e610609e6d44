#include <csignal>
#include <cstdio>

#include "troupe/actors/runtime/worker_process.hpp"
#include "troupe/apps/commands/cli.hpp"
#include "troupe/ops/isa.hpp"

int main(int argc, char** argv) {
  // A file beyond what `ulimit -f` allows is an error of its writer. Workers inherit this.
  std::signal(SIGXFSZ, SIG_IGN);
  if (troupe::Status s = troupe::ops::ready(); !s.ok()) {
    std::fprintf(stderr, "troupe: %s\n", s.text().c_str());
    return 2;
  }
  // Started as a worker by a master on this machine.
  if (int descriptor = troupe::worker_argument(argc, argv); descriptor >= 0)
    return troupe::run_inherited_worker(descriptor);
  return troupe::run_cli(argc, argv);
}
