// A bias and Relu behind a result on a GPU, where no library computes them with it.
#pragma once

#include <span>
#include <vector>

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {

// BiasAdd and, if so, Relu, of one type.
std::vector<GpuFunction> functions_that_follow(DType dtype, bool relu);
// y += bias if there is one, and Relu of y if there is a function for that, in place. `functions`
// are those above. REQUIRES: the bias fits y, which is not empty.
Status follow(const KernelContext& ctx, std::span<const GpuFunction> functions, const Tensor* bias,
              Tensor& y);

}  // namespace troupe::cuda
