// What slicing, turning, padding and joining do on GPUs: the CPU's kernels, whose copies go through
// these functions where the tensors are on a GPU (support/views.hpp, support/joins.hpp).
#pragma once

#include <memory>

#include "core/shape.hpp"
#include "devices/cuda/gpu_kernel.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {

inline bool on_gpu(const KernelContext& ctx) { return ctx.device().space() == MemorySpace::device; }

// to[b . index] = from[a . index] for every index below `dims`, with strides a and b in elements.
Status copy_strided(const KernelContext& ctx, DType dtype, const Shape& dims, const void* from,
                    const std::int64_t* a, void* to, const std::int64_t* b);
// The same, added to what is there. For floats.
Status add_strided(const KernelContext& ctx, DType dtype, const Shape& dims, const void* from,
                   const std::int64_t* a, void* to, const std::int64_t* b);
// All of `y` is `value`. Not for complex numbers.
Status fill_with(const KernelContext& ctx, double value, Tensor& y);

// What copy_strided launches, for kernels that call it.
GpuFunction copy_strided_function(DType dtype);

// `kernel`, with the functions that the above launch for attribute T.
std::unique_ptr<Kernel> moving_kernel(std::unique_ptr<Kernel> kernel, DType dtype);
template <KernelFactory kMake>
Expected<std::unique_ptr<Kernel>> moving(const KernelSpec& spec) {
  TROUPE_TRY(auto kernel, kMake(spec));
  return moving_kernel(std::move(kernel), spec.type());
}

}  // namespace troupe::cuda
