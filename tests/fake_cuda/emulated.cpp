#include "tests/fake_cuda/emulated.hpp"

#include <bit>

#include "core/dtype.hpp"

// Device code, which finds CUDA's words in the header above.
#include "gpu_functions.hpp"

namespace troupe::simt {
namespace {

constexpr EmulatedKernel kKernels[] = {
#include "gpu_functions.inc"
};

}  // namespace

std::span<const EmulatedKernel> emulated_kernels() { return kKernels; }

float float_of_half(std::uint16_t bits) { return std::bit_cast<half>(bits); }
std::uint16_t half_of_float(float x) { return half(x).bits; }

}  // namespace troupe::simt
