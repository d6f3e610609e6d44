// Indices of rows, and adding rows up by them.
#pragma once

#include <fmt/core.h>

#include "ops/kernels/args.hpp"
#include "ops/kernels/elementwise.hpp"

namespace troupe {

// f(the elements of a tensor of i32 or i64).
template <class F>
void with_indices(const Tensor& indices, F&& f) {
  if (indices.dtype() == DType::i32)
    f(indices.data<std::int32_t>());
  else
    f(indices.data<std::int64_t>());
}

// invalid_argument naming the first index outside [0, limit).
inline Status check_indices(const Tensor& indices, std::int64_t limit) {
  Status status;
  with_indices(indices, [&](const auto* at) {
    for (std::int64_t i = 0; i < indices.elements() && status.ok(); ++i)
      if (at[i] < 0 || at[i] >= limit)
        status =
            invalid_argument(fmt::format("indices[{}] = {} is outside [0, {})", i, at[i], limit));
  });
  return status;
}

// The dimensions of `a`, then those of `b` from dimension `from` on.
inline Expected<PartialShape> append(const PartialShape& a, const PartialShape& b, int from) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape::unknown();
  auto dims = a.dims();
  for (int i = from; i < b.rank(); ++i) dims.push_back(b.dim(i));
  return PartialShape::make(dims);
}

// sums[indices[i]] = f(sums[indices[i]], rows[i]), in the order of i. Lanes share the columns, so
// that every sum is one lane's and its order is fixed. REQUIRES: indices that were checked.
template <class T, class F>
void scatter(const KernelContext& ctx, const Tensor& data, const Tensor& indices, Tensor& sums,
             F f) {
  const std::int64_t row = sums.shape().elements(1, sums.rank());
  T* to = sums.mutable_data<T>();
  const Chunks columns = Chunks::of_step(row, 256);
  if (row != 0)
    ctx.parallel(columns.count, [&](std::int64_t c) {
      with_indices(indices, [&, r = columns[c], from = data.data<T>()](const auto* at) {
        for (std::int64_t i = 0; i < indices.elements(); ++i)
          each(r.size(), [=, sum = to + at[i] * row + r.begin, add = from + i * row + r.begin](
                             std::int64_t k) { sum[k] = f(sum[k], add[k]); });
      });
    });
}
template <class T>
void scatter_add(const KernelContext& ctx, const Tensor& data, const Tensor& indices,
                 Tensor& sums) {
  scatter<T>(ctx, data, indices, sums, [](T sum, T x) { return T(sum + x); });
}
// Output = zeros with input 0 added at the indices of input 1.
template <class T>
Status scatter_add(KernelContext& ctx, const Shape& shape) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1);
  TROUPE_TRY(check_indices(indices, shape.dim(0)));
  TROUPE_TRY(Tensor sums, ctx.allocate(data.dtype(), shape));
  T* to = sums.mutable_data<T>();
  for_chunks(ctx, sums.elements(), [&](Range r) { std::fill_n(to + r.begin, r.size(), T(0)); });
  scatter_add<T>(ctx, data, indices, sums);
  ctx.set_output(0, std::move(sums));
  return ok_status();
}

}  // namespace troupe
