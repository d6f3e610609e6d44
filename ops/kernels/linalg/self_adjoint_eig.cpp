// SelfAdjointEig: eigenvalues and eigenvectors of symmetric matrices.
#include "ops/kernels/linalg/matrices.hpp"
#include "ops/kernels/linalg/orthogonal.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status eig_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape x, square_input(c, 0));
  TROUPE_TRY(PartialShape e, beside_batch(x, {dim_from_end(x, 1)}));
  c.set(0, std::move(e));
  c.set(1, std::move(x));
  return ok_status();
}
template <class T>
struct SelfAdjointEig final : Kernel {
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const Matrices all, square_matrices_of(x, "x"));
    const std::int64_t n = all.rows;
    TROUPE_TRY(const Shape e_shape, beside_batch(x.shape(), {n}));
    TROUPE_TRY(Tensor e, ctx.allocate(x.dtype(), e_shape));
    TROUPE_TRY(Tensor v, ctx.allocate(x.dtype(), x.shape()));
    const T* from = x.data<T>();
    T *to_e = e.mutable_data<T>(), *to_v = v.mutable_data<T>();
    TROUPE_TRY(for_matrices(ctx, count_for(all, {&e, &v}), 9 * cubed(n), [&](std::int64_t i) {
      const T* a = from + i * all.size();
      if (!all_finite(a, all.size())) {
        fill_nan(to_e + i * n, n);
        fill_nan(to_v + i * all.size(), all.size());
        return ok_status();
      }
      Eigenvalues out;
      if (!symmetric_eigenvalues(as_doubles(a, all.size()), n, out))
        return internal_error(fmt::format("the eigenvalues of matrix {} do not converge", i));
      copy_to(out.e, to_e + i * n);
      copy_to(out.v, to_v + i * all.size());
      return ok_status();
    }));
    ctx.set_output(0, std::move(e));
    ctx.set_output(1, std::move(v));
    return ok_status();
  }
};
// v (diag(de) + F (v^T dv)) v^T, of which the symmetric part; F = 1 / (e_j - e_i).
std::vector<Output> eig_grad(GradContext& c) {
  const Output e = c.y[0], v = c.y[1];
  const Output inner =
      plus(c.g.add("MatrixDiag", {c.dy[0]}), multiply(inverse_gaps(e), product(v, c.dy[1], true)));
  return {symmetric_part(product(product(v, inner), v, false, true))};
}

}  // namespace

TROUPE_OPS(self_adjoint_eig) {
  r.add({.name = "SelfAdjointEig",
         .in = {"x"},
         .out = {"e", "v"},
         .types = kReals,
         .shape = eig_shape,
         .grad = eig_grad,
         .contraction = true,
         .doc = "(x + x^T) / 2 = v diag(e) v^T for matrices [..., n, n]: eigenvalues e [..., n] in "
                "ascending order and eigenvectors as the orthonormal columns of v [..., n, n]; x "
                "itself should be symmetric. In each column, the first element that is at least "
                "half as large as the largest is positive. Computed in f64. Non-finite elements "
                "give NaN. Eigenvectors of equal eigenvalues have no gradient: nothing flows "
                "through them."})
      .cpu(typed_kernel<SelfAdjointEig, Reals>);
}
