#include "ops/kernels/linalg/factors.hpp"

#include <algorithm>
#include <cmath>

#include "ops/kernels/support/gemm.hpp"

namespace troupe {

namespace {

// Blocks up to this size are worked on element by element.
constexpr std::int64_t kBlock = 32;

// c -= a b, of m x k and k x n.
template <class T>
Status subtract_product(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                        Matrix<const T> b, Matrix<T> c) {
  if (m == 0 || n == 0 || k == 0) return ok_status();
  const std::int64_t rows = a.transpose ? k : m, columns = a.transpose ? m : k;
  std::vector<T> negative(std::size_t(m * k));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      negative[std::size_t(i * columns + j)] = -a.data[i * a.stride + j];
  return gemm<T>(m, n, k, {negative.data(), columns, a.transpose}, b, true, c);
}

template <class T>
void subtract_row(T* to, const T* from, T factor, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) to[j] -= factor * from[j];
}

// to = from transposed, which has so many rows and columns.
template <class T>
void turn(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, T* to,
          std::int64_t to_stride) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
}

// Row by row from the side where one unknown stands alone.
template <class T>
void solve_block(const Triangle<T>& a, T* b, std::int64_t columns, std::int64_t stride) {
  const bool forward = a.lower != a.transpose;
  for (std::int64_t step = 0; step < a.n; ++step) {
    const std::int64_t i = forward ? step : a.n - 1 - step;
    const std::int64_t begin = forward ? 0 : i + 1, end = forward ? i : a.n;
    T* row = b + i * stride;
    for (std::int64_t k = begin; k < end; ++k)
      subtract_row(row, b + k * stride,
                   a.transpose ? a.data[k * a.stride + i] : a.data[i * a.stride + k], columns);
    if (a.unit_diagonal) continue;
    const T pivot = a.data[i * a.stride + i];
    for (std::int64_t j = 0; j < columns; ++j) row[j] /= pivot;
  }
}

template <class T>
Expected<bool> cholesky_in_place(T* a, std::int64_t n, std::int64_t stride) {
  if (n > kBlock) {
    const std::int64_t h = n / 2, rest = n - h;
    T *below = a + h * stride, *corner = below + h;
    TROUPE_TRY(bool positive, cholesky_in_place(a, h, stride));
    if (!positive) return false;
    // below = below L^-T: a row of it solves L x = the row.
    std::vector<T> turned(std::size_t(h * rest));
    turn(below, stride, rest, h, turned.data(), rest);
    TROUPE_TRY(solve_triangle<T>({.data = a, .n = h, .stride = stride}, turned.data(), rest, rest));
    turn(turned.data(), rest, h, rest, below, stride);
    TROUPE_TRY(subtract_product<T>(rest, rest, h, {below, stride, false}, {below, stride, true},
                                   {corner, stride}));
    return cholesky_in_place(corner, rest, stride);
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      T sum = a[i * stride + j];
      for (std::int64_t k = 0; k < j; ++k) sum -= a[i * stride + k] * a[j * stride + k];
      if (i == j && !(sum > 0)) return false;
      a[i * stride + j] = i == j ? std::sqrt(sum) : sum / a[j * stride + j];
    }
  return true;
}

// The first of the largest numbers, whatever their signs.
template <class T>
std::int64_t largest(const T* x, std::int64_t n) {
  T most = 0;
#pragma omp simd reduction(max : most)
  for (std::int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(x[i]));
  for (std::int64_t i = 0; i < n; ++i)
    if (std::abs(x[i]) == most) return i;
  return 0;
}

// Few columns, [first, last), from row `first` on. They are laid one behind the other for it, as
// the work is along them. Rows are exchanged in these columns alone.
template <class T>
void lu_few_columns(T* a, std::int64_t n, std::int64_t first, std::int64_t last, LuFactor& lu) {
  const std::int64_t width = last - first, height = n - first;
  std::vector<T> columns(std::size_t(width * height));
  T* const corner = a + first * n + first;
  turn(corner, n, height, width, columns.data(), height);
  for (std::int64_t j = 0; j < width; ++j) {
    T* const column = columns.data() + j * height;
    const std::int64_t best = j + largest(column + j, height - j);
    lu.swaps[std::size_t(first + j)] = first + best;
    lu.odd = lu.odd != (best != j);
    for (std::int64_t k = 0; best != j && k < width; ++k)
      std::swap(columns[std::size_t(k * height + j)], columns[std::size_t(k * height + best)]);
    const T pivot = column[j];
    if (pivot == 0) {  // as is the column below it
      lu.singular = true;
      continue;
    }
    const std::int64_t below = height - j - 1;
    for (std::int64_t i = 0; i < below; ++i) column[j + 1 + i] /= pivot;
    for (T* other = column + height; other != columns.data() + width * height; other += height)
      subtract_row(other + j + 1, column + j + 1, other[j], below);
  }
  turn(columns.data(), height, width, height, corner, n);
}

// Columns [first, last) from row `first` on. Rows are exchanged in these columns alone, and later
// in the others.
template <class T>
Status lu_columns(T* a, std::int64_t n, std::int64_t first, std::int64_t last, LuFactor& lu) {
  if (last - first <= kBlock) {
    lu_few_columns(a, n, first, last, lu);
    return ok_status();
  }
  const auto exchange = [&](std::int64_t i, std::int64_t begin, std::int64_t end) {
    const std::int64_t other = lu.swaps[std::size_t(i)];
    if (other != i) std::swap_ranges(a + i * n + begin, a + i * n + end, a + other * n + begin);
  };
  const std::int64_t middle = first + (last - first) / 2, left = middle - first;
  TROUPE_TRY(lu_columns(a, n, first, middle, lu));
  for (std::int64_t i = first; i < middle; ++i) exchange(i, middle, last);
  T *corner = a + first * n + first, *above = a + first * n + middle;
  TROUPE_TRY(solve_triangle<T>({.data = corner, .n = left, .stride = n, .unit_diagonal = true},
                               above, last - middle, n));
  TROUPE_TRY(subtract_product<T>(n - middle, last - middle, left,
                                 {a + middle * n + first, n, false}, {above, n, false},
                                 {a + middle * n + middle, n}));
  TROUPE_TRY(lu_columns(a, n, middle, last, lu));
  for (std::int64_t i = middle; i < last; ++i) exchange(i, first, middle);
  return ok_status();
}

}  // namespace

template <class T>
Status solve_triangle(const Triangle<T>& a, T* b, std::int64_t columns, std::int64_t stride) {
  if (a.n == 0 || columns == 0) return ok_status();
  if (a.n <= kBlock) {
    solve_block(a, b, columns, stride);
    return ok_status();
  }
  // [p 0; q r] x = b, or [p q; 0 r] x = b: the half that stands alone first.
  const std::int64_t h = a.n / 2, rest = a.n - h;
  Triangle<T> p = a, r = a;
  p.n = h;
  r.n = rest;
  r.data = a.data + h * a.stride + h;
  const T* q = a.lower ? a.data + h * a.stride : a.data + h;
  T *top = b, *bottom = b + h * stride;
  if (a.lower != a.transpose) {
    TROUPE_TRY(solve_triangle(p, top, columns, stride));
    TROUPE_TRY(subtract_product<T>(rest, columns, h, {q, a.stride, a.transpose},
                                   {top, stride, false}, {bottom, stride}));
    return solve_triangle(r, bottom, columns, stride);
  }
  TROUPE_TRY(solve_triangle(r, bottom, columns, stride));
  TROUPE_TRY(subtract_product<T>(h, columns, rest, {q, a.stride, a.transpose},
                                 {bottom, stride, false}, {top, stride}));
  return solve_triangle(p, top, columns, stride);
}

template <class T>
Expected<bool> cholesky_factor(T* a, std::int64_t n) {
  TROUPE_TRY(bool positive, cholesky_in_place(a, n, n));
  for (std::int64_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  return positive;
}

template <class T>
Expected<LuFactor> lu_factor(T* a, std::int64_t n) {
  LuFactor lu;
  lu.swaps.resize(std::size_t(n));
  TROUPE_TRY(lu_columns(a, n, 0, n, lu));
  return lu;
}

template <class T>
Status lu_solve(const T* factors, const LuFactor& lu, std::int64_t n, bool transpose, T* b,
                std::int64_t columns) {
  const auto exchange = [&](std::int64_t i) {
    const std::int64_t other = lu.swaps[std::size_t(i)];
    if (other != i) std::swap_ranges(b + i * columns, b + (i + 1) * columns, b + other * columns);
  };
  Triangle<T> l{
      .data = factors, .n = n, .stride = n, .transpose = transpose, .unit_diagonal = true};
  Triangle<T> u{.data = factors, .n = n, .stride = n, .lower = false, .transpose = transpose};
  for (std::int64_t i = 0; !transpose && i < n; ++i) exchange(i);
  TROUPE_TRY(solve_triangle(transpose ? u : l, b, columns, columns));
  TROUPE_TRY(solve_triangle(transpose ? l : u, b, columns, columns));
  for (std::int64_t i = n - 1; transpose && i >= 0; --i) exchange(i);
  return ok_status();
}

template Status solve_triangle(const Triangle<float>&, float*, std::int64_t, std::int64_t);
template Status solve_triangle(const Triangle<double>&, double*, std::int64_t, std::int64_t);
template Expected<bool> cholesky_factor(float*, std::int64_t);
template Expected<bool> cholesky_factor(double*, std::int64_t);
template Expected<LuFactor> lu_factor(float*, std::int64_t);
template Expected<LuFactor> lu_factor(double*, std::int64_t);
template Status lu_solve(const float*, const LuFactor&, std::int64_t, bool, float*, std::int64_t);
template Status lu_solve(const double*, const LuFactor&, std::int64_t, bool, double*, std::int64_t);

}  // namespace troupe
