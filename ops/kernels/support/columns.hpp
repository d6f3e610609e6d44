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

template <class T>
struct TwoTerms {
  T first, second;
};
// first[j] += the sum of term(i, j).first over those rows, second[j] += that of its second. No term
// reads these sums.
template <class T, class Term>
void add_two_terms(Range rows, std::int64_t n, T* __restrict first, T* __restrict second,
                   Term&& term) {
  std::int64_t i = rows.begin;
  for (; i + 8 <= rows.end; i += 8) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const TwoTerms<T> a = term(i, j), b = term(i + 1, j), c = term(i + 2, j), d = term(i + 3, j);
      const TwoTerms<T> e = term(i + 4, j), f = term(i + 5, j), g = term(i + 6, j),
                        h = term(i + 7, j);
      first[j] +=
          ((a.first + b.first) + (c.first + d.first)) + ((e.first + f.first) + (g.first + h.first));
      second[j] += ((a.second + b.second) + (c.second + d.second)) +
                   ((e.second + f.second) + (g.second + h.second));
    }
  }
  for (; i < rows.end; ++i) {
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const TwoTerms<T> t = term(i, j);
      first[j] += t.first;
      second[j] += t.second;
    }
  }
}

// sums[j] += the sum of term(i, j), and squares[j] += that of its squares, over those rows.
template <class T, class Term>
void add_terms_and_squares(Range rows, std::int64_t n, T* sums, T* squares, Term&& term) {
  add_two_terms(rows, n, sums, squares, [=](std::int64_t i, std::int64_t j) -> TwoTerms<T> {
    const T t = term(i, j);
    return {t, t * t};
  });
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
