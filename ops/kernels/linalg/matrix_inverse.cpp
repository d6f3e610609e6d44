// MatrixInverse and determinants, from the factors L U of each matrix.
#include "ops/kernels/linalg/factors.hpp"
#include "ops/kernels/linalg/matrices.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

template <class T>
struct MatrixInverse final : Kernel {
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const Matrices all, square_matrices_of(x, "x"));
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), x.shape()));
    const std::int64_t n = all.rows;
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    TROUPE_TRY(for_matrices(ctx, count_for(all, {&y}), 2 * cubed(n), [&](std::int64_t i) -> Status {
      const T* a = from + i * all.size();
      T* inverse = to + i * all.size();
      if (!all_finite(a, all.size())) {
        fill_nan(inverse, all.size());
        return ok_status();
      }
      TROUPE_TRY(Tensor room, copied(ctx, a, all.size()));
      T* const factors = room.mutable_data<T>();
      TROUPE_TRY(const LuFactor lu, lu_factor(factors, n));
      if (lu.singular) return bad_matrix(i, all.count, "is singular: it has no inverse");
      std::fill_n(inverse, all.size(), T(0));
      for (std::int64_t j = 0; j < n; ++j) inverse[j * (n + 1)] = 1;
      return lu_solve<T>(factors, lu, n, false, inverse, n);
    }));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
};
// d(A^-1) = -A^-1 dA A^-1
std::vector<Output> inverse_grad(GradContext& c) {
  const Output y = c.y[0];
  return {negate(product(product(y, c.dy[0], true), y, false, true))};
}

Status determinant_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape x, square_input(c, 0));
  if (x.known_rank()) {
    TROUPE_TRY(x, PartialShape::make(std::span(x.dims()).first(x.dims().size() - 2)));
  }
  for (int i = 0; i < c.outputs(); ++i) c.set(i, x);
  return ok_status();
}
// Of each matrix the determinant, or (kLog) its sign and the logarithm of its size.
template <class T, bool kLog>
struct DeterminantOf final : Kernel {
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const Matrices all, square_matrices_of(x, "x"));
    const Shape batch(x.shape().dims().first(std::size_t(x.rank() - 2)));
    TROUPE_TRY(Tensor first, ctx.allocate(x.dtype(), batch));
    Tensor second;
    if (kLog) {
      TROUPE_TRY(second, ctx.allocate(x.dtype(), batch));
    }
    const T* from = x.data<T>();
    T *to = first.mutable_data<T>(), *logs = kLog ? second.mutable_data<T>() : nullptr;
    TROUPE_TRY(for_matrices(ctx, all.count, cubed(all.rows), [&](std::int64_t i) -> Status {
      return one(ctx, from + i * all.size(), all.rows, to[i], kLog ? logs + i : nullptr);
    }));
    ctx.set_output(0, std::move(first));
    if (kLog) ctx.set_output(1, std::move(second));
    return ok_status();
  }
  static Status one(const KernelContext& ctx, const T* a, std::int64_t n, T& value, T* log) {
    if (!all_finite(a, n * n)) {
      value = std::numeric_limits<T>::quiet_NaN();
      if (log) *log = value;
      return ok_status();
    }
    TROUPE_TRY(Tensor room, copied(ctx, a, n * n));
    T* const factors = room.mutable_data<T>();
    TROUPE_TRY(const LuFactor lu, lu_factor(factors, n));
    value = lu.odd ? T(-1) : T(1);
    double sum = 0;
    // Of `value`, which stays between 1/2 and 1: a part of the product may be large.
    int exponent = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const T pivot = factors[j * (n + 1)];
      if (kLog) {
        value *= pivot > 0 ? T(1) : pivot < 0 ? T(-1) : T(0);
        sum += std::log(std::abs(double(pivot)));
      } else {
        int of_pivot = 0, of_product = 0;
        value = std::frexp(value * std::frexp(pivot, &of_pivot), &of_product);
        exponent += of_pivot + of_product;
      }
    }
    value = std::scalbn(value, exponent);
    if (lu.singular) value = 0, sum = -std::numeric_limits<double>::infinity();
    if (log) *log = T(sum);
    return ok_status();
  }
};
template <class T>
using MatrixDeterminant = DeterminantOf<T, false>;
template <class T>
using LogMatrixDeterminant = DeterminantOf<T, true>;

// `slope` for each matrix, times the transposed inverse.
std::vector<Output> determinant_slope(GradContext& c, Output slope) {
  const Output inverse = c.g.add("MatrixInverse", {c.x[0]});
  return {multiply(expanded_at(expanded_at(slope, -1), -1), transposed(inverse))};
}
std::vector<Output> determinant_grad(GradContext& c) {
  return determinant_slope(c, multiply(c.dy[0], c.y[0]));
}
std::vector<Output> log_determinant_grad(GradContext& c) { return determinant_slope(c, c.dy[1]); }

}  // namespace

TROUPE_OPS(matrix_inverse) {
  r.add({.name = "MatrixInverse",
         .in = {"x"},
         .out = {"y"},
         .types = kReals,
         .shape = square_to_same,
         .grad = inverse_grad,
         .contraction = true,
         .doc = "The inverses of square matrices [..., n, n]. A singular matrix is an error; one "
                "with non-finite elements gives NaN."})
      .cpu(typed_kernel<MatrixInverse, Reals>);
  r.add({.name = "MatrixDeterminant",
         .in = {"x"},
         .out = {"y"},
         .types = kReals,
         .shape = determinant_shape,
         .grad = determinant_grad,
         .contraction = true,
         .doc = "The determinants of square matrices: [..., n, n] gives [...]. That of a 0 x 0 "
                "matrix is 1. The gradient needs the inverse, so for a singular matrix it is an "
                "error."})
      .cpu(typed_kernel<MatrixDeterminant, Reals>);
  r.add({.name = "LogMatrixDeterminant",
         .in = {"x"},
         .out = {"sign", "log_abs"},
         .types = kReals,
         .shape = determinant_shape,
         .grad = log_determinant_grad,
         .contraction = true,
         .doc = "The sign (1, 0 or -1) of the determinants of square matrices and the logarithm of "
                "their absolute value, which neither overflows nor underflows; 0 and -inf for a "
                "singular matrix. The gradient of log_abs is the transposed inverse."})
      .cpu(typed_kernel<LogMatrixDeterminant, Reals>);
}
