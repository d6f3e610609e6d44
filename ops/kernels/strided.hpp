// Copies in which input and output walk at different strides: Transpose, Slice, Pad, Tile, Reverse.
#pragma once

#include <array>

#include "core/shape.hpp"
#include "devices/chunks.hpp"
#include "ops/kernels/types.hpp"

namespace troupe {

using Strides = std::array<std::int64_t, kMaxRank>;

// Row-major strides of a shape, in elements.
inline Strides strides_of(const Shape& shape) {
  Strides s{};
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    s[std::size_t(i)] = step;
    step *= shape.dim(i);
  }
  return s;
}

// Visits the index space `dims` as rows along the last dimension:
//   row(at_a, at_b, n) with the offsets that strides a and b give to the row's start.
// Rows are numbered from 0; only those of `rows` are visited.
template <class Row>
void strided_rows(const Shape& dims, const Strides& a, const Strides& b, Range rows, Row&& row) {
  const int last = dims.rank() - 1;
  const std::int64_t n = last < 0 ? 1 : dims.dim(last);
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t at_a = 0, at_b = 0, rest = rows.begin;
  for (int d = last - 1; d >= 0; --d) {
    const auto i = std::size_t(d);
    index[i] = rest % dims.dim(d);
    rest /= dims.dim(d);
    at_a += index[i] * a[i];
    at_b += index[i] * b[i];
  }
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    row(at_a, at_b, n);
    for (int d = last - 1; d >= 0; --d) {  // the next row: count up like an odometer
      const auto i = std::size_t(d);
      at_a += a[i];
      at_b += b[i];
      if (++index[i] < dims.dim(d)) break;
      at_a -= index[i] * a[i];
      at_b -= index[i] * b[i];
      index[i] = 0;
    }
  }
}
inline std::int64_t row_count(const Shape& dims) {
  return dims.rank() == 0 ? 1 : dims.elements(0, dims.rank() - 1);
}

// to[b . index] = from[a . index] for every index below `dims`, in chunks of rows.
template <class T>
void strided_copy(const KernelContext& ctx, const Shape& dims, const T* from, const Strides& a,
                  T* to, const Strides& b) {
  if (dims.elements() == 0) return;
  const int last = dims.rank() - 1;
  const std::int64_t step_a = last < 0 ? 1 : a[std::size_t(last)];
  const std::int64_t step_b = last < 0 ? 1 : b[std::size_t(last)];
  const Chunks chunks = row_chunks(row_count(dims), last < 0 ? 1 : dims.dim(last));
  ctx.parallel(chunks.count, [&](std::int64_t c) {
    strided_rows(dims, a, b, chunks[c], [&](std::int64_t at_a, std::int64_t at_b, std::int64_t n) {
      if (step_a == 1 && step_b == 1)
        std::copy_n(from + at_a, n, to + at_b);
      else
        for (std::int64_t i = 0; i < n; ++i) to[at_b + i * step_b] = from[at_a + i * step_a];
    });
  });
}

}  // namespace troupe
