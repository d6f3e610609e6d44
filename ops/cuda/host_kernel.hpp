// What a GPU cannot do: the CPU kernel, on the host beside it, with copies.
#pragma once

#include <memory>

#include "devices/kernel.hpp"

namespace troupe {

struct KernelSpec;  // ops/op.hpp

namespace cuda {

// For ops that must be where something else is, such as rules that update variables: placement
// gives others without a CUDA kernel to the CPU. compute() waits for the inputs' contents.
std::unique_ptr<Kernel> host_kernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec);

}  // namespace cuda
}  // namespace troupe
