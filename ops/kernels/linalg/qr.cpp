// Qr: orthonormal columns times an upper triangle.
#include "ops/kernels/linalg/matrices.hpp"
#include "ops/kernels/linalg/orthogonal.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status qr_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 2));
  const PartialShape& x = c.shape(0);
  const std::int64_t m = dim_from_end(x, 2), n = dim_from_end(x, 1);
  const std::int64_t k = c.bool_attr("full_matrices") ? m : m < 0 || n < 0 ? -1 : std::min(m, n);
  TROUPE_TRY(PartialShape q, beside_batch(x, {m, k}));
  TROUPE_TRY(PartialShape r, beside_batch(x, {k, n}));
  c.set(0, std::move(q));
  c.set(1, std::move(r));
  return ok_status();
}
template <class T>
struct Qr final : Kernel {
  explicit Qr(const KernelSpec& s) : full(s.bool_attr("full_matrices")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const Matrices all, matrices_of(x, "x"));
    const std::int64_t m = all.rows, n = all.columns, k = full ? m : std::min(m, n);
    TROUPE_TRY(const Shape q_shape, beside_batch(x.shape(), {m, k}));
    TROUPE_TRY(const Shape r_shape, beside_batch(x.shape(), {k, n}));
    TROUPE_TRY(Tensor q, ctx.allocate(x.dtype(), q_shape));
    TROUPE_TRY(Tensor r, ctx.allocate(x.dtype(), r_shape));
    const T* from = x.data<T>();
    T *to_q = q.mutable_data<T>(), *to_r = r.mutable_data<T>();
    const double work = 4 * double(all.size()) * double(std::max<std::int64_t>(k, 1));
    TROUPE_TRY(for_matrices(ctx, count_for(all, {&q, &r}), work, [&](std::int64_t i) -> Status {
      const T* a = from + i * all.size();
      if (!all_finite(a, all.size())) {
        fill_nan(to_q + i * m * k, m * k);
        fill_nan(to_r + i * k * n, k * n);
        return ok_status();
      }
      const QrFactors f = qr_factors(as_doubles(a, all.size()), m, n, full);
      copy_to(f.q, to_q + i * m * k);
      copy_to(f.r, to_r + i * k * n);
      return ok_status();
    }));
    ctx.set_output(0, std::move(q));
    ctx.set_output(1, std::move(r));
    return ok_status();
  }
  const bool full;
};

// Of a matrix with rows >= columns: da = (dq + q copyltu(r dr^T - dq^T q)) r^-T, where copyltu
// mirrors the lower triangle.
Output tall_qr_slope(Output q, Output r, Output dq, Output dr) {
  const Output m = minus(product(r, dr, false, true), product(dq, q, true));
  const Output mirrored = plus(band(m, -1, 0), transposed(minus(band(m, -1, 0), band(m, 0, 0))));
  const Output right = plus(dq, product(q, mirrored));
  return transposed(q.graph().add("MatrixTriangularSolve", {r, transposed(right)},
                                  {{"lower", false}, {"adjoint", false}}));
}
std::vector<Output> qr_grad(GradContext& c) {
  const PartialShape& x = c.x[0].shape();
  const Output q = c.y[0], r = c.y[1], dq = c.dy[0], dr = c.dy[1];
  const std::int64_t m = dim_from_end(x, 2), n = dim_from_end(x, 1);
  if (m < 0 || n < 0 || m >= n) return {tall_qr_slope(q, r, dq, dr)};
  // x = [a b] = q [u v]: the gradient of b is q dv, and what q has of v goes to a with it.
  const auto columns = [&](Output of, std::int64_t begin, std::int64_t size) {
    std::vector<std::int64_t> from(std::size_t(x.rank()), 0), sizes(std::size_t(x.rank()), -1);
    from.back() = begin;
    sizes.back() = size;
    return c.g.add("Slice", {of, i64_const(c.g, from), i64_const(c.g, sizes)});
  };
  const Output b = columns(c.x[0], m, n - m), dv = columns(dr, m, n - m);
  const Output da =
      tall_qr_slope(q, columns(r, 0, m), plus(dq, product(b, dv, false, true)), columns(dr, 0, m));
  return {c.g.add("Concat", {da, product(q, dv)}, {{"axis", x.rank() - 1}})};
}

}  // namespace

TROUPE_OPS(qr) {
  r.add({.name = "Qr",
         .in = {"x"},
         .out = {"q", "r"},
         .types = kReals,
         .attrs = {"full_matrices: bool = false"},
         .shape = qr_shape,
         .grad = qr_grad,
         .contraction = true,
         .doc = "x = q r for matrices [..., m, n]: q [..., m, k] has orthonormal columns, r [..., "
                "k, n] is upper triangular with a nonnegative diagonal; k is the smaller of m and "
                "n, or m with full_matrices. Computed in f64. Non-finite elements give NaN. The "
                "gradient assumes that the first k columns are independent, and needs k = n, or m "
                "< n known before the run."})
      .cpu(typed_kernel<Qr, Reals>);
}
