// Sums down the columns of a matrix, in a fixed tree of row blocks: bias gradients, statistics per
// channel. (Eigen's reduction over the first axis of row-major data is a hundred times slower than
// a loop.)
#pragma once

#include "devices/chunks.hpp"
#include "ops/kernels/support/typed.hpp"

namespace troupe {

// sums[j] += the sum of term(i, j) over those rows, for j below n. Eight rows at a time in pairs:
// fewer passes over the sums, which wait for one another, and smaller errors.
template <class T, class Term>
void add_terms(Range rows, std::int64_t n, T* __restrict sums, Term&& term) {
  std::int64_t i = rows.begin;
  for (; i + 8 <= rows.end; i += 8)
    for (std::int64_t j = 0; j < n; ++j)
      sums[j] += ((term(i, j) + term(i + 1, j)) + (term(i + 2, j) + term(i + 3, j))) +
                 ((term(i + 4, j) + term(i + 5, j)) + (term(i + 6, j) + term(i + 7, j)));
  for (; i < rows.end; ++i)
    for (std::int64_t j = 0; j < n; ++j) sums[j] += term(i, j);
}

// sums[j] += the sum of term(i, j), and squares[j] += that of its squares, over those rows.
template <class T, class Term>
void add_terms_and_squares(Range rows, std::int64_t n, T* __restrict sums, T* __restrict squares,
                           Term&& term) {
  const auto pairwise = [](const T* t) {
    return ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
  };
  std::int64_t i = rows.begin;
  for (; i + 8 <= rows.end; i += 8)
    for (std::int64_t j = 0; j < n; ++j) {
      T t[8], square[8];
      for (std::int64_t k = 0; k < 8; ++k) t[k] = term(i + k, j);
      for (std::int64_t k = 0; k < 8; ++k) square[k] = t[k] * t[k];
      sums[j] += pairwise(t);
      squares[j] += pairwise(square);
    }
  for (; i < rows.end; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const T t = term(i, j);
      sums[j] += t;
      squares[j] += t * t;
    }
}

// out[0 .. width) = the sum over all rows of what leaf(rows, sums) adds to zeroed sums[0 .. width).
// `columns` sizes the blocks of rows; width is a small multiple of it.
template <class T, class Leaf>
Status column_sums(const KernelContext& c, std::int64_t rows, std::int64_t columns,
                   std::int64_t width, T* out, Leaf&& leaf) {
  std::fill_n(out, width, T(0));
  const Chunks leaves = column_sum_leaves(rows, columns);
  if (leaves.count <= 1) {
    if (leaves.count == 1) leaf(leaves[0], out);
    return ok_status();
  }
  TROUPE_TRY(Tensor partials, c.allocate(dtype_of<T>, Shape{leaves.count, width}));
  T* part = partials.mutable_data<T>();
  c.parallel(leaves.count, [&](std::int64_t i) {
    std::fill_n(part + i * width, width, T(0));
    leaf(leaves[i], part + i * width);
  });
  const Chunks columns_of = tree_columns(width);
  c.parallel(columns_of.count, [&](std::int64_t i) {
    const Range r = columns_of[i];
    tree_sum(leaves.count, [&](std::int64_t to, std::int64_t from) {
      T* __restrict sum = part + to * width;
      const T* __restrict more = part + from * width;
      for (std::int64_t j = r.begin; j < r.end; ++j) sum[j] += more[j];
    });
  });
  std::copy_n(part, width, out);
  return ok_status();
}

}  // namespace troupe
