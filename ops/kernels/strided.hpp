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

// strided_copy where the output is contiguous along the last dimension and the input along another
// one, `p`: read row by row, every element of the input would cost a cache line of its own. Tiles
// of 16 x 16 use every line they touch whole, on both sides.
template <class T>
void transposing_copy(const KernelContext& ctx, Shape dims, const T* from, const Strides& a, T* to,
                      const Strides& b, int p) {
  constexpr std::int64_t kBlock = 16;
  const auto at_p = std::size_t(p), last = std::size_t(dims.rank() - 1);
  const std::int64_t height = dims.dim(p), width = dims.dim(int(last));
  const std::int64_t blocks = (height + kBlock - 1) / kBlock;
  dims.set_dim(p, 1);
  dims.set_dim(int(last), 1);
  const Chunks chunks = row_chunks(dims.elements() * blocks, kBlock * width);
  ctx.parallel(chunks.count, [&](std::int64_t c) {
    for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k) {
      const std::int64_t outer = k / blocks, first = k % blocks * kBlock;
      const std::int64_t rows = std::min(kBlock, height - first);
      strided_rows(dims, a, b, {outer, outer + 1},
                   [&](std::int64_t at_a, std::int64_t at_b, std::int64_t) {
                     const T* x = from + at_a + first;
                     T* y = to + at_b + first * b[at_p];
                     for (std::int64_t i = 0; i < width; i += kBlock) {
                       const std::int64_t n = std::min(kBlock, width - i);
                       T tile[kBlock * kBlock];
                       for (std::int64_t k = 0; k < n; ++k)
                         for (std::int64_t j = 0; j < rows; ++j)
                           tile[j * kBlock + k] = x[(i + k) * a[last] + j];
                       for (std::int64_t j = 0; j < rows; ++j)
                         std::copy_n(tile + j * kBlock, n, y + j * b[at_p] + i);
                     }
                   });
    }
  });
}

// to[b . index] = from[a . index] for every index below `dims`, in chunks of rows.
template <class T>
void strided_copy(const KernelContext& ctx, const Shape& dims, const T* from, const Strides& a,
                  T* to, const Strides& b) {
  if (dims.elements() == 0) return;
  const int last = dims.rank() - 1;
  for (int p = 0; p < last && b[std::size_t(last)] == 1 && a[std::size_t(last)] != 1; ++p)
    if (a[std::size_t(p)] == 1 && dims.dim(p) > 1)
      return transposing_copy(ctx, dims, from, a, to, b, p);
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
