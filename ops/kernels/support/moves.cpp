#include "ops/kernels/support/moves.hpp"

#include <algorithm>

#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/transpose_square.hpp"

namespace troupe {
namespace {

// Element j of row k of `from`, which has a row every `a` elements, goes to element k of row j of
// `to`: n rows of m elements. Rows of `to` are written to their ends, one square's height at a
// time: where rows are a multiple of 4 KiB apart, more of them than a set of the cache has ways
// would evict each other half written.
template <class T>
void transpose_tile(const T* from, std::int64_t a, std::int64_t n, std::int64_t m, T* to,
                    std::int64_t b) {
  constexpr std::int64_t kSquare =
      std::is_integral_v<T> ? std::min<std::size_t>(16, 32 / sizeof(T)) : 1;
  for (std::int64_t j = 0; j < m; j += kSquare)
    for (std::int64_t k = 0; k < n; k += kSquare) {
      const T* x = from + k * a + j;
      T* y = to + j * b + k;
      const std::int64_t rows = std::min(kSquare, n - k), columns = std::min(kSquare, m - j);
      if constexpr (kSquare > 1)
        if (rows == kSquare && columns == kSquare) {
          transpose_square<kSquare>(x, a, y, b);
          continue;
        }
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          y[column * b + row] = x[row * a + column];
    }
}

// A copy where the output is contiguous along the last dimension and the input along another
// one, `p`: read row by row, every element of the input would cost a cache line of its own. Tiles
// of 32 x 32 use every line they touch whole, on both sides.
template <class T>
void transposing_copy(const KernelContext& ctx, Shape dims, const T* from, const Strides& a, T* to,
                      const Strides& b, int p) {
  constexpr std::int64_t kBlock = 32;
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
                       transpose_tile(x + i * a[last], a[last], n, rows, y + i, b[at_p]);
                     }
                   });
    }
  });
}

// to[i] = from[-i]. They do not overlap.
template <class T>
void copy_backwards(const T* __restrict from, std::int64_t n, T* __restrict to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[-i];
}

template <class T>
void copy_strided(const KernelContext& ctx, const Shape& dims, const T* from, const Strides& a,
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
      else if (step_a == -1 && step_b == 1)
        copy_backwards(from + at_a, n, to + at_b);
      else
        for (std::int64_t i = 0; i < n; ++i) to[at_b + i * step_b] = from[at_a + i * step_a];
    });
  });
}

template <class T>
void fill(const void* value, std::int64_t n, void* to) {
  std::fill_n(static_cast<T*>(to), n, *static_cast<const T*>(value));
}

}  // namespace

Moves::Moves(DType dtype)
    : size_(std::int64_t(dtype_size(dtype))), strings_(dtype == DType::string), fill_(nullptr) {
  (void)dispatch_moves(dtype, [&](auto tag) {
    fill_ = troupe::fill<typename decltype(tag)::type>;
    return ok_status();
  });
}

void fill_tensor(const KernelContext& ctx, const void* value, Tensor& y) {
  const Moves moves(y.dtype());
  for_chunks(ctx, y.elements(),
             [&](Range r) { moves.fill(value, r.size(), moves.at(y.mutable_raw(), r.begin)); });
}

void fill_zeros(const KernelContext& ctx, Tensor& y) {
  const std::uint64_t zero[2] = {};
  fill_tensor(ctx, zero, y);
}

void repeat_tensor(const KernelContext& ctx, const Broadcast<2>& meet, const Tensor& x, Tensor& y) {
  const Moves moves(y.dtype());
  const void* in = x.raw();
  void* out = y.mutable_raw();
  for_chunks(ctx, y.elements(), [&](Range r) {
    meet.rows(r, [&](std::int64_t o, auto at, std::int64_t n, auto steps) {
      if (steps[1] == 0)
        moves.fill(moves.at(in, at[1]), n, moves.at(out, o));
      else
        moves.copy(moves.at(in, at[1]), n, moves.at(out, o));
    });
  });
}

void strided_copy(const KernelContext& ctx, DType dtype, const Shape& dims, const void* from,
                  const Strides& a, void* to, const Strides& b) {
  (void)dispatch_moves(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy_strided(ctx, dims, static_cast<const T*>(from), a, static_cast<T*>(to), b);
    return ok_status();
  });
}

}  // namespace troupe
