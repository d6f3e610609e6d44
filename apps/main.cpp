#include "actors/node.hpp"
#include "apps/commands/cli.hpp"

int main(int argc, char** argv) {
  // Started as a worker by a master on this machine.
  if (int descriptor = troupe::worker_argument(argc, argv); descriptor >= 0)
    return troupe::run_inherited_worker(descriptor);
  return troupe::run_cli(argc, argv);
}
