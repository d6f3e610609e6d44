// Cholesky: x = L L^T.
#include "ops/kernels/linalg/factors.hpp"
#include "ops/kernels/linalg/matrices.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

template <class T>
struct Cholesky final : Kernel {
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const Matrices all, square_matrices_of(x, "x"));
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), x.shape()));
    const std::int64_t n = all.rows;
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    TROUPE_TRY(for_matrices(ctx, count_for(all, {&y}), cubed(n) / 3, [&](std::int64_t k) -> Status {
      const T* a = from + k * all.size();
      T* l = to + k * all.size();
      if (!all_finite(a, all.size())) {
        fill_nan(l, all.size());
        return ok_status();
      }
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j <= i; ++j) l[i * n + j] = a[i * n + j] / 2 + a[j * n + i] / 2;
      TROUPE_TRY(const bool positive, cholesky_factor(l, n));
      return positive ? ok_status() : bad_matrix(k, all.count, "is not positive definite");
    }));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
};
// S = L^-T phi(L^T dL) L^-1, of which the symmetric part; phi: the lower triangle, with half of the
// diagonal.
std::vector<Output> cholesky_grad(GradContext& c) {
  const Output l = c.y[0];
  const Output inner = product(l, c.dy[0], true);
  const Output phi =
      minus(band(inner, -1, 0), multiply(band(inner, 0, 0), scalar_like(inner, 0.5)));
  const auto solve = [&](Output b) {
    return c.g.add("MatrixTriangularSolve", {l, b}, {{"lower", true}, {"adjoint", true}});
  };
  return {symmetric_part(solve(transposed(solve(transposed(phi)))))};
}

}  // namespace

TROUPE_OPS(cholesky) {
  r.add({.name = "Cholesky",
         .in = {"x"},
         .out = {"y"},
         .types = kReals,
         .shape = square_to_same,
         .grad = cholesky_grad,
         .contraction = true,
         .doc = "The lower triangular L with L L^T = (x + x^T) / 2, for matrices [..., n, n]; x "
                "itself should be symmetric. A matrix that is not positive definite is an error; "
                "one with non-finite elements gives NaN."})
      .cpu(typed_kernel<Cholesky, Reals>);
}
