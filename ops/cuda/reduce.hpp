// Reductions of GPUs (ops/device/reduce.cuh). Which threads add up what depends on shapes alone.
// Long ones are cut into parts, whose results are joined by another launch.
#pragma once

#include <array>
#include <span>
#include <typeinfo>
#include <vector>

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {

// Reduces tensors of one type by one formula (ops/formulas/reduction.hpp).
class Reducer {
 public:
  // `wraps`: signed integers have the bits of unsigned ones.
  Reducer(const std::type_info& formula, DType dtype, bool wraps);

  std::span<GpuFunction> functions() { return functions_; }
  // `x` reduced over the dimensions in `reduced`, under the shape `out`.
  Expected<Tensor> operator()(const KernelContext& ctx, const Tensor& x,
                              const std::vector<bool>& reduced, const Shape& out) const;

 private:
  DType dtype_;
  std::array<GpuFunction, 6> functions_;  // rows, columns, few; the same of what is not finished
};

// What sums of `dtype` are, until they are rounded.
DType sum_type(DType dtype);
// Adds up the columns of such sums, [rows, columns], and rounds them to `dtype`.
GpuFunction sum_of_columns(DType dtype);
Status sum_columns(const KernelContext& ctx, const GpuFunction& function, const void* sums,
                   void* to, std::int64_t rows, std::int64_t columns);

}  // namespace troupe::cuda
