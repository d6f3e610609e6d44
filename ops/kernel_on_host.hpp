// A CPU kernel among the nodes of a device with memory of its own.
#pragma once

#include <memory>

#include "devices/kernel.hpp"

namespace troupe {

// For nodes whose inputs and outputs are in host memory (kOnHostAttr). REQUIRES: contents of the
// inputs are there when compute() is called.
std::unique_ptr<Kernel> kernel_on_host(std::unique_ptr<Kernel> cpu);

}  // namespace troupe
