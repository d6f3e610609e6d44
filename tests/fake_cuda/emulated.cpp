#include "tests/fake_cuda/emulated.hpp"

// Device code, which finds CUDA's words in the header above.
#include "gpu_functions.hpp"

namespace troupe::simt {
namespace {

constexpr EmulatedKernel kKernels[] = {
#include "gpu_functions.inc"
};

}  // namespace

std::span<const EmulatedKernel> emulated_kernels() { return kKernels; }

}  // namespace troupe::simt
