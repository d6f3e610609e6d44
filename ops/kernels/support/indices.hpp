// Indices of rows, and adding rows up by them.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/formulas/arithmetic.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/moves.hpp"

namespace troupe {

// f(the elements of a tensor of i32 or i64).
template <class F>
void with_indices(const Tensor& indices, F&& f) {
  if (indices.dtype() == DType::i32)
    f(indices.data<std::int32_t>());
  else
    f(indices.data<std::int64_t>());
}

// invalid_argument naming the first index outside [0, limit), as one of `name`.
Status check_indices(const Tensor& indices, std::int64_t limit, std::string_view name = "indices");

// Whether the first dimensions of `data` may be those of `first`. REQUIRES: known ranks.
bool begins_with(const PartialShape& data, const PartialShape& first);

// The dimensions of `a`, then those of `b` from dimension `from` on.
Expected<PartialShape> append(const PartialShape& a, const PartialShape& b, int from);

// The shape of what `indices` take from `params` along `axis`: their dimensions stand in the place
// of that one.
Expected<PartialShape> gathered_shape(const PartialShape& indices, const PartialShape& params,
                                      std::int64_t axis);

// Tensors around one dimension, `axis`: `outer` blocks of `size` rows.
struct RowBlocks {
  RowBlocks(const Shape& shape, int axis)
      : outer(shape.elements(0, axis)),
        size(shape.dim(axis)),
        row(shape.elements(axis + 1, shape.rank())) {}
  std::int64_t outer, size, row;
};

// The indices as i64.
std::vector<std::int64_t> places(const Tensor& indices);
// Rows of a large table are in no cache, and no processor guesses which comes next: whoever goes
// through them asks for the row that is rows_ahead() places ahead, or for its beginning. So many
// lie in about 8 KiB: fewer leave the memory idle, more fill the first cache.
inline std::int64_t rows_ahead(std::size_t bytes) {
  return std::clamp<std::int64_t>(8192 / std::int64_t(std::max<std::size_t>(bytes, 1)), 8, 64);
}
inline void fetch_soon(const void* row, std::size_t bytes) {
  const char* const at = static_cast<const char*>(row);
  for (std::size_t i = 0; i < std::min<std::size_t>(bytes, 1024); i += 64)
    __builtin_prefetch(at + i);
}

// The numbers of the indices, those of one place together and in their order.
// REQUIRES: indices that were checked.
std::vector<std::int64_t> by_place(const Tensor& indices);

// Lanes share the columns, a sum at a time of which is kept in f32.
template <class T>
void scatter_add_in_float(const KernelContext& ctx, const Tensor& data, const Tensor& indices,
                          Tensor& sums, int axis) {
  constexpr std::int64_t kColumns = 256;
  const RowBlocks blocks(sums.shape(), axis);
  const std::int64_t row = blocks.row, n = indices.elements();
  if (row == 0 || n == 0) return;
  const std::vector<std::int64_t> order = by_place(indices);
  T* to = sums.mutable_data<T>();
  const Chunks columns = Chunks::of_step(row, kColumns);
  const Chunks outer = row_chunks(blocks.outer, n * row);
  ctx.parallel(outer.count * columns.count, [&](std::int64_t c) {
    with_indices(indices, [&, r = columns[c % columns.count], o = outer[c / columns.count],
                           from = data.data<T>()](const auto* at) {
      float sum[kColumns];
      for (std::int64_t b = o.begin; b < o.end; ++b) {
        T* const block = to + b * blocks.size * row + r.begin;
        const T* const added = from + b * n * row + r.begin;
        for (std::size_t i = 0; i < order.size();) {
          const auto place = at[order[i]];
          T* total = block + place * row;
          std::copy_n(total, r.size(), sum);
          for (; i < order.size() && at[order[i]] == place; ++i) {
            const T* more = added + order[i] * row;
            for (std::int64_t k = 0; k < r.size(); ++k) sum[k] += float(more[k]);
          }
          for (std::int64_t k = 0; k < r.size(); ++k) total[k] = T(sum[k]);
        }
      }
    });
  });
}

// sums[.., indices[i], ..] = f(sums[.., indices[i], ..], data[.., i, ..]), in the order of i. Lanes
// share the columns, or the blocks, so that every sum is one lane's and its order is fixed.
// REQUIRES: indices that were checked.
template <class T, class F>
void scatter(const KernelContext& ctx, const Tensor& data, const Tensor& indices, Tensor& sums, F f,
             int axis = 0) {
  const RowBlocks blocks(sums.shape(), axis);
  const std::int64_t n = indices.elements(), row = blocks.row;
  T* to = sums.mutable_data<T>();
  const Chunks columns = Chunks::of_step(row, 256);
  if (row == 0 || n == 0) return;
  const Chunks outer = row_chunks(blocks.outer, n * row);
  ctx.parallel(outer.count * columns.count, [&](std::int64_t c) {
    with_indices(indices, [&, r = columns[c % columns.count], o = outer[c / columns.count],
                           from = data.data<T>()](const auto* at) {
      for (std::int64_t b = o.begin; b < o.end; ++b) {
        T* const block = to + b * blocks.size * row + r.begin;
        const T* const added = from + b * n * row + r.begin;
        for (std::int64_t i = 0; i < n; ++i)
          each(r.size(), [=, sum = block + at[i] * row, add = added + i * row](std::int64_t k) {
            sum[k] = f(sum[k], add[k]);
          });
      }
    });
  });
}
// sums[indices[i]] += rows[i]. Of f16 and bf16 all rows of one place are added in f32, and the sum
// is rounded once; a sum of that type would stand still at a few hundred.
template <class T>
void scatter_add(const KernelContext& ctx, const Tensor& data, const Tensor& indices, Tensor& sums,
                 int axis = 0) {
  if (is_complex(data.dtype())) {  // whose parts are of type T
    const RowBlocks blocks(sums.shape(), axis);
    const auto parts = [&](const Tensor& t, std::int64_t size) {
      return Tensor(dtype_of<T>, Shape{blocks.outer, size, 2 * blocks.row}, t.buffer(), t.offset());
    };
    Tensor to = parts(sums, blocks.size);
    return scatter_add<T>(ctx, parts(data, indices.elements()), indices, to, 1);
  }
  if constexpr (std::is_same_v<Compute<T>, T>)
    scatter<T>(ctx, data, indices, sums, formula::Add(), axis);
  else
    scatter_add_in_float<T>(ctx, data, indices, sums, axis);
}
// Output = zeros with input 0 added at the indices of input 1.
template <class T>
Status scatter_add(KernelContext& ctx, const Shape& shape, int axis = 0) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1);
  TROUPE_TRY(check_indices(indices, shape.dim(axis)));
  TROUPE_TRY(Tensor sums, ctx.allocate(data.dtype(), shape));
  fill_zeros(ctx, sums);
  scatter_add<T>(ctx, data, indices, sums, axis);
  ctx.set_output(0, std::move(sums));
  return ok_status();
}

}  // namespace troupe
