// Products of matrices on GPUs.
#pragma once

#include <memory>

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/device/arguments.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {

// Of one product, [m, k] by [k, n], of which a factor may lie transposed; without the tensors.
device::MatMulArgs matmul_args(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
                               bool transpose_b);

// MatMul, _MatMulBias and BatchMatMul, by the op's name.
Expected<std::unique_ptr<Kernel>> matmul(const KernelSpec& spec);
// What they launch, with matmul_args. Signed integers have the bits of unsigned ones.
GpuFunction matmul_function(DType dtype);

// A factor of products that lie next to each other, as it is or transposed.
struct MatrixFactor {
  const void* data;
  bool transpose = false;
};
// `count` products of matrices [m, k] and [k, n] that follow each other, as MatMul's: for kernels
// that multiply, with matmul_function.
Status multiply(const KernelContext& ctx, const GpuFunction& function, DType dtype,
                const MatrixFactor& a, const MatrixFactor& b, void* y, std::int64_t count,
                std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace troupe::cuda
