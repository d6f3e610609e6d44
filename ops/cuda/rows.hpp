// Rows of tensors on GPUs by numbers in host memory, where they are checked and sorted: no two
// threads add to one element, and rows are added up in their order (ops/device/rows.cuh).
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {

// Tensors around one dimension: `outer` blocks of `size` rows of `inner` elements.
struct RowView {
  std::int64_t outer, size, inner;
};

class RowTaker {
 public:
  RowTaker(DType dtype, DType index);
  std::span<GpuFunction> functions() { return {&function_, 1}; }
  // y[outer, i, inner] = x[outer, indices[i], inner].
  Status operator()(const KernelContext& ctx, const Tensor& x, const RowView& view,
                    const Tensor& indices, Tensor& y) const;

 private:
  GpuFunction function_;
};

// The numbers of rows by place, as device code reads them (device::FoldRowsArgs).
struct RowGroups {
  Tensor there;
  std::int64_t count = 0;

  static Expected<RowGroups> of(const KernelContext& ctx, std::span<const std::int64_t> order,
                                std::span<const std::int64_t> places);
};

// The type of a function that folds rows: of "AddRows" or "JoinRows<troupe::formula::SumOf>".
std::string fold_type(const std::string& fold, DType dtype);
// Of a place without rows one of these numbers, where y is not read.
struct Nothing {
  double number = 0;
  std::int64_t integer = 0;
};
Status fold_rows(const KernelContext& ctx, const GpuFunction& fold, const Tensor& x,
                 const RowGroups& groups, const RowView& view, Tensor& y,
                 const Nothing& nothing = {});

class RowFolder {
 public:
  // `fold` as for fold_type(). `wraps`: signed integers have the bits
  // of unsigned ones.
  RowFolder(const std::string& fold, DType dtype, bool wraps);
  std::span<GpuFunction> functions() { return functions_; }

  Status fill_zeros(const KernelContext& ctx, Tensor& y) const;
  // Adds the rows of x to those of y by their places. `order`: the numbers of rows, those of one
  // place together and in their order; `places` by row.
  Status add(const KernelContext& ctx, const Tensor& x, std::span<const std::int64_t> order,
             std::span<const std::int64_t> places, const RowView& view, Tensor& y) const;
  // All rows of each place.
  Status join(const KernelContext& ctx, const Tensor& x, std::span<const std::int64_t> order,
              std::span<const std::int64_t> places, const RowView& view, const Nothing& nothing,
              Tensor& y) const;

 private:
  std::array<GpuFunction, 2> functions_;  // of rows, of zeros
};

}  // namespace troupe::cuda
