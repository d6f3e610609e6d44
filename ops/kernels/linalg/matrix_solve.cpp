// MatrixSolve and MatrixTriangularSolve: systems of linear equations.
#include "ops/kernels/linalg/factors.hpp"
#include "ops/kernels/linalg/matrices.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status solve_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape a, square_input(c, 0));
  TROUPE_TRY(c.want_rank_at_least(1, 2));
  TROUPE_TRY(want_one_batch(a, c.shape(1), dim_from_end(a, 1)));
  PartialShape b = c.shape(1);
  if (a.known_rank()) {  // what a says is known of b
    TROUPE_TRY(PartialShape wanted, beside_batch(a, {dim_from_end(a, 1), -1}));
    TROUPE_TRY(b, PartialShape::merge(wanted, b));
  }
  c.set(0, std::move(b));
  return ok_status();
}

// x of a x = b for each matrix: Solve<T>(i, count, a, n, b, columns) turns b into x.
template <class T, class Solve>
Status solve_all(KernelContext& ctx, Solve solve) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  TROUPE_TRY(const Matrices all, square_matrices_of(a, "a"));
  TROUPE_TRY(const Matrices sides, matrices_of(b, "b"));
  TROUPE_TRY(want_one_batch(a.shape(), b.shape(), all.rows));
  TROUPE_TRY(Tensor x, ctx.allocate(b.dtype(), b.shape()));
  const T *from = a.data<T>(), *right = b.data<T>();
  T* to = x.mutable_data<T>();
  const double work = cubed(all.rows) + double(all.size()) * double(sides.columns);
  TROUPE_TRY(for_matrices(ctx, count_for(all, {&x}), work, [&](std::int64_t i) -> Status {
    std::copy_n(right + i * sides.size(), sides.size(), to + i * sides.size());
    return solve(i, all.count, from + i * all.size(), all.rows, to + i * sides.size(),
                 sides.columns);
  }));
  ctx.set_output(0, std::move(x));
  return ok_status();
}

template <class T>
struct MatrixSolve final : Kernel {
  explicit MatrixSolve(const KernelSpec& s) : adjoint(s.bool_attr("adjoint")) {}
  Status compute(KernelContext& ctx) override {
    return solve_all<T>(ctx,
                        [&](std::int64_t i, std::int64_t count, const T* a, std::int64_t n, T* b,
                            std::int64_t columns) -> Status {
                          if (!all_finite(a, n * n)) {
                            fill_nan(b, n * columns);
                            return ok_status();
                          }
                          TROUPE_TRY(Tensor room, copied(ctx, a, n * n));
                          T* const factors = room.mutable_data<T>();
                          TROUPE_TRY(const LuFactor lu, lu_factor(factors, n));
                          if (lu.singular) return bad_matrix(i, count, "is singular");
                          return lu_solve<T>(factors, lu, n, adjoint, b, columns);
                        });
  }
  const bool adjoint;
};
template <class T>
struct MatrixTriangularSolve final : Kernel {
  explicit MatrixTriangularSolve(const KernelSpec& s)
      : lower(s.bool_attr("lower")), adjoint(s.bool_attr("adjoint")) {}
  Status compute(KernelContext& ctx) override {
    return solve_all<T>(
        ctx,
        [&](std::int64_t i, std::int64_t count, const T* a, std::int64_t n, T* b,
            std::int64_t columns) -> Status {
          for (std::int64_t j = 0; j < n; ++j)
            if (a[j * (n + 1)] == 0)
              return bad_matrix(i, count, "is singular: its diagonal has a 0");
          return solve_triangle<T>(
              {.data = a, .n = n, .stride = n, .lower = lower, .transpose = adjoint}, b, columns,
              columns);
        });
  }
  const bool lower, adjoint;
};

// Of a x = b: db = a^-T dx, da = -db x^T. Of a^T x = b, da is that transposed.
std::vector<Output> solve_slopes(GradContext& c, Output db) {
  const Output x = c.y[0];
  const bool adjoint = c.bool_attr("adjoint");
  return {negate(adjoint ? product(x, db, false, true) : product(db, x, false, true)), db};
}
std::vector<Output> solve_grad(GradContext& c) {
  return solve_slopes(
      c, c.g.add("MatrixSolve", {c.x[0], c.dy[0]}, {{"adjoint", !c.bool_attr("adjoint")}}));
}
std::vector<Output> triangular_solve_grad(GradContext& c) {
  const bool lower = c.bool_attr("lower");
  auto slopes = solve_slopes(c, c.g.add("MatrixTriangularSolve", {c.x[0], c.dy[0]},
                                        {{"lower", lower}, {"adjoint", !c.bool_attr("adjoint")}}));
  slopes[0] = lower ? band(slopes[0], -1, 0) : band(slopes[0], 0, -1);
  return slopes;
}

}  // namespace

TROUPE_OPS(matrix_solve) {
  r.add({.name = "MatrixSolve",
         .in = {"a", "b"},
         .out = {"x"},
         .types = kReals,
         .attrs = {"adjoint: bool = false"},
         .shape = solve_shape,
         .grad = solve_grad,
         .contraction = true,
         .doc = "Solves a x = b, or with `adjoint` a^T x = b, for matrices a [..., n, n] and b "
                "[..., n, k] with equal batch dimensions. A singular a is an error; one with "
                "non-finite elements gives NaN."})
      .cpu(typed_kernel<MatrixSolve, Reals>);
  r.add({.name = "MatrixTriangularSolve",
         .in = {"a", "b"},
         .out = {"x"},
         .types = kReals,
         .attrs = {"lower: bool = true", "adjoint: bool = false"},
         .shape = solve_shape,
         .grad = triangular_solve_grad,
         .contraction = true,
         .doc = "MatrixSolve for a lower (or upper) triangular a; elements on the other side of "
                "the diagonal are not read. A 0 on the diagonal is an error."})
      .cpu(typed_kernel<MatrixTriangularSolve, Reals>);
}
