// Tensors of GPUs that are made of others by moving elements.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/device/arguments.hpp"
#include "ops/kernels/support/broadcast.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {

// The type of a function that copies elements, and its launch: of n that lie next to each other.
std::string copy_type(DType dtype);
Status copy_elements(const KernelContext& ctx, const GpuFunction& copy, const void* from, void* to,
                     std::int64_t n);

// Repeats tensors of one type along dimensions in which they have one element.
class Repeater {
 public:
  explicit Repeater(DType dtype);
  std::span<GpuFunction> functions() { return functions_; }
  // x under the shape `out`, to which `like` broadcasts: x has its elements. Floats are multiplied
  // by `scale` before, if there is one.
  Expected<Tensor> operator()(const KernelContext& ctx, const Tensor& x, const Shape& like,
                              const Shape& out, std::optional<double> scale = {}) const;

 private:
  DType dtype_;
  std::array<GpuFunction, 2> functions_;  // moved, scaled (of floats)
};

// Where the elements of the inputs that meet are, for device code.
template <int N, int M>
device::Walk<N> walk_of(const Broadcast<M>& meet) {
  static_assert(N <= M);
  device::Walk<N> walk{};
  walk.rank = meet.rank();
  for (int d = 0; d < meet.rank(); ++d) {
    walk.dims[d] = meet.dim(d);
    for (int i = 0; i < N; ++i) walk.strides[i][d] = meet.stride(i, d);
  }
  return walk;
}

// A tensor of the host, copied to the device before what its stream is given next.
Expected<Tensor> uploaded(const KernelContext& ctx, const Tensor& here);

// Const: copied to the device once.
Expected<std::unique_ptr<Kernel>> constant(const KernelSpec& spec);
// y = x, without a copy.
Expected<std::unique_ptr<Kernel>> pass(const KernelSpec& spec);

}  // namespace troupe::cuda
