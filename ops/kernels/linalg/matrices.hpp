// Batches of matrices: the last two dimensions of a tensor, counted by those before them.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "devices/chunks.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/op.hpp"

namespace troupe {

struct Matrices {
  std::int64_t count = 0, rows = 0, columns = 0;
  std::int64_t size() const { return rows * columns; }
};

inline Expected<Matrices> matrices_of(const Tensor& x, const char* name) {
  if (x.rank() < 2)
    return invalid_argument(
        fmt::format("{} must have rank 2 or more, not {}", name, x.shape().text()));
  return Matrices{x.shape().elements(0, x.rank() - 2), x.dim(x.rank() - 2), x.dim(x.rank() - 1)};
}
inline Expected<Matrices> square_matrices_of(const Tensor& x, const char* name) {
  TROUPE_TRY(Matrices all, matrices_of(x, name));
  if (all.rows != all.columns)
    return invalid_argument(fmt::format("{} must be square, not {}", name, x.shape().text()));
  return all;
}

// The dimensions before the last two, and these behind them.
inline Expected<Shape> beside_batch(const Shape& x, std::initializer_list<std::int64_t> last) {
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end() - 2);
  dims.insert(dims.end(), last);
  return Shape::make(dims);
}
inline Expected<PartialShape> beside_batch(const PartialShape& x,
                                           std::initializer_list<std::int64_t> last) {
  if (!x.known_rank()) return x;
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end() - 2);
  dims.insert(dims.end(), last);
  return PartialShape::make(dims);
}
// Dimension `from_end` (1: the last one), or PartialShape::kUnknown.
inline std::int64_t dim_from_end(const PartialShape& x, int from_end) {
  return x.known_rank() ? x.dims()[x.dims().size() - std::size_t(from_end)]
                        : PartialShape::kUnknown;
}

// The shape of input i, whose last two dimensions are one: what either says is known of both.
inline Expected<PartialShape> square_input(const InferenceContext& c, int i) {
  TROUPE_TRY(c.want_rank_at_least(i, 2));
  PartialShape x = c.shape(i);
  if (!x.known_rank()) return x;
  const std::int64_t rows = dim_from_end(x, 2), columns = dim_from_end(x, 1);
  if (rows >= 0 && columns >= 0 && rows != columns)
    return invalid_argument(
        fmt::format("{} must be square, not {}", c.op().in[std::size_t(i)].name, x.text()));
  const std::int64_t n = std::max(rows, columns);
  return beside_batch(x, {n, n});
}
inline Status square_to_same(InferenceContext& c) {
  TROUPE_TRY(PartialShape x, square_input(c, 0));
  for (int i = 0; i < c.outputs(); ++i) c.set(i, x);
  return ok_status();
}

// Inputs a [..., m, n] and b [..., p, k] of one batch, of which p is `rows_of_b`, when known.
inline Status want_one_batch(const PartialShape& a, const PartialShape& b, std::int64_t rows_of_b) {
  if (!a.known_rank() || !b.known_rank()) return ok_status();
  const std::int64_t rows = dim_from_end(b, 2);
  bool fits = a.rank() == b.rank() && (rows < 0 || rows_of_b < 0 || rows == rows_of_b);
  for (int i = 0; fits && i + 2 < a.rank(); ++i)
    fits = !a.known(i) || !b.known(i) || std::int64_t(a.dim(i)) == std::int64_t(b.dim(i));
  if (fits) return ok_status();
  return invalid_argument(fmt::format("a {} and b {} do not fit", a.text(), b.text()));
}

// How many matrices there is something to do for: none where no output has an element, of which
// there may be any number.
inline std::int64_t count_for(const Matrices& all, std::initializer_list<const Tensor*> outputs) {
  const bool some = std::any_of(outputs.begin(), outputs.end(),
                                [](const Tensor* t) { return t->elements() != 0; });
  return some ? all.count : 0;
}

// one(i) -> Status for each matrix, on all lanes. `work` is about what one costs, in operations.
template <class F>
Status for_matrices(const KernelContext& ctx, std::int64_t count, double work, F&& one) {
  const auto each = std::int64_t(std::clamp(2e5 / std::max(work, 1.0), 1.0, 1e5));
  const Chunks chunks = Chunks::of_step(count, each);
  if (chunks.count == 0) return ok_status();
  return parallel_chunks(ctx, chunks.count, [&](std::int64_t c) -> Status {
    for (std::int64_t i = chunks[c].begin; i < chunks[c].end; ++i) TROUPE_TRY(one(i));
    return ok_status();
  });
}
inline double cubed(std::int64_t n) { return double(n) * double(n) * double(n); }

inline Status bad_matrix(std::int64_t i, std::int64_t count, const char* what) {
  if (count == 1) return invalid_argument(fmt::format("the matrix {}", what));
  return invalid_argument(fmt::format("matrix {} of the batch {}", i, what));
}

template <class T>
bool all_finite(const T* x, std::int64_t n) {
  int others = 0;
#pragma omp simd reduction(| : others)
  for (std::int64_t i = 0; i < n; ++i)
    others |= !(std::abs(x[i]) <= std::numeric_limits<T>::max()) ? 1 : 0;
  return others == 0;
}
// A copy to work on. Of the device's memory, which recycles it, as the C library would not.
template <class T>
Expected<Tensor> copied(const KernelContext& ctx, const T* x, std::int64_t n) {
  TROUPE_TRY(Tensor copy, ctx.allocate(dtype_of<T>, Shape({n})));
  std::copy_n(x, n, copy.mutable_data<T>());
  return copy;
}
template <class T>
void fill_nan(T* x, std::int64_t n) {
  std::fill_n(x, n, std::numeric_limits<T>::quiet_NaN());
}

// Matrices of type T as numbers of type double, and back.
template <class T>
std::vector<double> as_doubles(const T* x, std::int64_t n) {
  return std::vector<double>(x, x + n);
}
template <class T>
void copy_to(const std::vector<double>& from, T* to) {
  std::transform(from.begin(), from.end(), to, [](double v) { return T(v); });
}

// For gradients: graph values of many matrices.
inline Output product(Output a, Output b, bool transpose_a = false, bool transpose_b = false) {
  return a.graph().add("BatchMatMul", {a, b},
                       {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}
inline Output transposed(Output x) { return x.graph().add("MatrixTranspose", {x}); }
inline Output expanded_at(Output x, std::int64_t axis) {
  return x.graph().add("ExpandDims", {x}, {{"axis", axis}});
}
inline Output band(Output x, std::int64_t lower, std::int64_t upper) {
  return x.graph().add("MatrixBandPart", {x}, {{"lower", lower}, {"upper", upper}});
}
inline Output symmetric_part(Output x) {
  return multiply(plus(x, transposed(x)), scalar_like(x, 0.5));
}
// 1 / x, and 0 where that is not finite: for the gradients of what is not differentiable there,
// in which it meets a gradient of 0 where nobody asked for it.
inline Output inverse_or_zero(Output x) {
  GraphBuilder& g = x.graph();
  const Output finite = g.add("IsFinite", {g.add("Reciprocal", {x})});
  const Output safe = where(finite, x, scalar_like(x, 1));
  return where(finite, g.add("Reciprocal", {safe}), scalar_like(x, 0));
}
// [..., i, j]: 1 / (x[..., j] - x[..., i]), and 0 where they are equal.
inline Output inverse_gaps(Output x) {
  return inverse_or_zero(minus(expanded_at(x, -2), expanded_at(x, -1)));
}

}  // namespace troupe
