// Everything that kernels of GPUs may ask to have compiled.
#pragma once

#include <vector>

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {

// All functions that the CUDA kernels of `table` have, for all element types that they take; by
// their types, ascending.
std::vector<GpuFunction> all_functions(const OpTable& table);

}  // namespace troupe::cuda
