// Svd: singular values and vectors.
#include "ops/kernels/linalg/matrices.hpp"
#include "ops/kernels/linalg/orthogonal.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status svd_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 2));
  const PartialShape& x = c.shape(0);
  if (!x.known_rank()) return ok_status();
  const std::int64_t m = dim_from_end(x, 2), n = dim_from_end(x, 1);
  const std::int64_t k = m < 0 || n < 0 ? -1 : std::min(m, n);
  TROUPE_TRY(PartialShape s, beside_batch(x, {k}));
  TROUPE_TRY(PartialShape u, beside_batch(x, {m, k}));
  TROUPE_TRY(PartialShape v, beside_batch(x, {n, k}));
  c.set(0, std::move(s));
  c.set(1, std::move(u));
  c.set(2, std::move(v));
  return ok_status();
}
template <class T>
struct Svd final : Kernel {
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const Matrices all, matrices_of(x, "x"));
    const std::int64_t m = all.rows, n = all.columns, k = std::min(m, n);
    TROUPE_TRY(const Shape s_shape, beside_batch(x.shape(), {k}));
    TROUPE_TRY(const Shape u_shape, beside_batch(x.shape(), {m, k}));
    TROUPE_TRY(const Shape v_shape, beside_batch(x.shape(), {n, k}));
    TROUPE_TRY(Tensor s, ctx.allocate(x.dtype(), s_shape));
    TROUPE_TRY(Tensor u, ctx.allocate(x.dtype(), u_shape));
    TROUPE_TRY(Tensor v, ctx.allocate(x.dtype(), v_shape));
    const T* from = x.data<T>();
    T *to_s = s.mutable_data<T>(), *to_u = u.mutable_data<T>(), *to_v = v.mutable_data<T>();
    TROUPE_TRY(for_matrices(
        ctx, count_for(all, {&s, &u, &v}), 20 * cubed(std::max(m, n)), [&](std::int64_t i) {
          const T* a = from + i * all.size();
          if (!all_finite(a, all.size())) {
            fill_nan(to_s + i * k, k);
            fill_nan(to_u + i * m * k, m * k);
            fill_nan(to_v + i * n * k, n * k);
            return ok_status();
          }
          SingularValues out;
          if (!singular_values(as_doubles(a, all.size()), m, n, out))
            return internal_error(
                fmt::format("the singular values of matrix {} do not converge", i));
          copy_to(out.s, to_s + i * k);
          copy_to(out.u, to_u + i * m * k);
          copy_to(out.v, to_v + i * n * k);
          return ok_status();
        }));
    ctx.set_output(0, std::move(s));
    ctx.set_output(1, std::move(u));
    ctx.set_output(2, std::move(v));
    return ok_status();
  }
};

// With F = 1 / (s_j^2 - s_i^2):
//   dx = u ((F (u^T du - du^T u)) S + S (F (v^T dv - dv^T v)) + diag(ds)) v^T
//      + (1 - u u^T) du S^-1 v^T + u S^-1 dv^T (1 - v v^T)
std::vector<Output> svd_grad(GradContext& c) {
  const Output s = c.y[0], u = c.y[1], v = c.y[2], ds = c.dy[0], du = c.dy[1], dv = c.dy[2];
  const Output gaps = inverse_gaps(multiply(s, s));
  const Output row = expanded_at(s, -2), column = expanded_at(s, -1);
  const Output inverse = expanded_at(inverse_or_zero(s), -2);
  const Output of_u = product(u, du, true), of_v = product(v, dv, true);
  const auto turns = [&](Output x) { return multiply(gaps, minus(x, transposed(x))); };
  const Output inner = plus(plus(multiply(turns(of_u), row), multiply(column, turns(of_v))),
                            c.g.add("MatrixDiag", {ds}));
  // What of du and dv points out of the columns of u and v.
  const Output out_of_u = multiply(minus(du, product(u, of_u)), inverse);
  const Output out_of_v = multiply(minus(dv, product(v, of_v)), inverse);
  return {plus(plus(product(product(u, inner), v, false, true), product(out_of_u, v, false, true)),
               product(u, out_of_v, false, true))};
}

}  // namespace

TROUPE_OPS(svd) {
  r.add({.name = "Svd",
         .in = {"x"},
         .out = {"s", "u", "v"},
         .types = kReals,
         .shape = svd_shape,
         .grad = svd_grad,
         .contraction = true,
         .doc = "x = u diag(s) v^T for matrices [..., m, n]: singular values s [..., k] in "
                "descending order, k being the smaller of m and n, and orthonormal columns u [..., "
                "m, k] and v [..., n, k]. In each column of u, the first element that is at least "
                "half as large as the largest is positive. Computed in f64 by Jacobi's method. "
                "Non-finite elements give NaN. Singular vectors of equal or zero singular values "
                "have no gradient: nothing flows through them."})
      .cpu(typed_kernel<Svd, Reals>);
}
