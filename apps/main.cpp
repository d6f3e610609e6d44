#include "apps/commands/cli.hpp"

int main(int argc, char** argv) { return troupe::run_cli(argc, argv, troupe::add_commands); }
