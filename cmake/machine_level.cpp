// Prints the x86-64 level of the machine that builds: the kernels that `troupe` needs to run here.
#include "ops/detail/machine_level.hpp"

#include <cstdio>

int main() { std::printf("%d", troupe::machine_level()); }
