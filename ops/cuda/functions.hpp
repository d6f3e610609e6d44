// Everything that kernels of GPUs may ask to have compiled.
#pragma once

#include <string>
#include <vector>

#include "ops/op.hpp"

namespace troupe::cuda {

// The types of all functions (GpuFunction::type) that the CUDA kernels of `table` have, for all
// element types that they take; ascending.
std::vector<std::string> all_functions(const OpTable& table);

}  // namespace troupe::cuda
