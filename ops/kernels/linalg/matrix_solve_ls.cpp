// MatrixSolveLs: least squares, through an orthogonal decomposition.
#include "ops/kernels/linalg/factors.hpp"
#include "ops/kernels/linalg/matrices.hpp"
#include "ops/kernels/linalg/orthogonal.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status least_squares_shape(InferenceContext& c) {
  const double l2 = c.float_attr("l2_regularizer");
  if (!(l2 >= 0) || std::isinf(l2))
    return invalid_argument(
        fmt::format("l2_regularizer must be 0 or a positive number, not {}", l2));
  for (int i : {0, 1}) TROUPE_TRY(c.want_rank_at_least(i, 2));
  const PartialShape &a = c.shape(0), &b = c.shape(1);
  TROUPE_TRY(want_one_batch(a, b, dim_from_end(a, 2)));
  PartialShape x;
  if (a.known_rank()) {
    TROUPE_TRY(x, beside_batch(a, {dim_from_end(a, 1), -1}));
  }
  if (b.known_rank()) {
    TROUPE_TRY(PartialShape wanted, beside_batch(b, {-1, dim_from_end(b, 1)}));
    TROUPE_TRY(x, PartialShape::merge(x, wanted));
  }
  c.set(0, std::move(x));
  return ok_status();
}

// One system, in double.
struct LeastSquares {
  std::int64_t m = 0, n = 0, columns = 0;
  double l2 = 0;

  // x (n x columns) of the least |a x - b|^2 + l2 |x|^2. False where a has not full rank.
  Expected<bool> solve(std::vector<double> a, std::vector<double> b, std::vector<double>& x) const {
    const bool over = m >= n;
    const std::int64_t tall = std::max(m, n), k = std::min(m, n);
    std::vector<double> t = over ? std::move(a) : transposed_matrix(a, m, n);
    std::int64_t rows = tall;
    if (l2 > 0) {  // [t; sqrt(l2)] = [q; ...] r has full rank, and r^T r is t^T t + l2
      rows += k;
      t.resize(std::size_t(rows * k), 0.0);
      for (std::int64_t j = 0; j < k; ++j) t[std::size_t((tall + j) * k + j)] = std::sqrt(l2);
    }
    QrFactors f = qr_factors(std::move(t), rows, k);
    f.q.resize(std::size_t(tall * k));
    double least = 0;  // on the diagonal of r: rounding leaves no zeros
    for (std::int64_t j = 0; j < k && l2 == 0; ++j)
      least = std::max(least, f.r[std::size_t(j * (k + 1))] * double(tall) *
                                  std::numeric_limits<double>::epsilon());
    for (std::int64_t j = 0; j < k; ++j)
      if (!(f.r[std::size_t(j * (k + 1))] > least)) return false;
    x.assign(std::size_t(n * columns), 0.0);
    if (over) multiply(transposed_matrix(f.q, tall, k), b, k, tall, x);  // r x = q^T b
    const Triangle<double> r{
        .data = f.r.data(), .n = k, .stride = k, .lower = false, .transpose = !over};
    TROUPE_TRY(solve_triangle(r, over ? x.data() : b.data(), columns, columns));
    if (!over) multiply(f.q, b, tall, k, x);  // x = q r^-T b, the shortest
    return true;
  }
  // to += a b, of rows x inner by inner x columns.
  void multiply(const std::vector<double>& a, const std::vector<double>& b, std::int64_t rows,
                std::int64_t inner, std::vector<double>& to) const {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t p = 0; p < inner; ++p)
        for (std::int64_t j = 0; j < columns; ++j)
          to[std::size_t(i * columns + j)] +=
              a[std::size_t(i * inner + p)] * b[std::size_t(p * columns + j)];
  }
};

template <class T>
struct MatrixSolveLs final : Kernel {
  explicit MatrixSolveLs(const KernelSpec& s) : l2(s.float_attr("l2_regularizer")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    TROUPE_TRY(const Matrices all, matrices_of(a, "a"));
    TROUPE_TRY(const Matrices sides, matrices_of(b, "b"));
    TROUPE_TRY(want_one_batch(a.shape(), b.shape(), all.rows));
    TROUPE_TRY(const Shape shape, beside_batch(a.shape(), {all.columns, sides.columns}));
    TROUPE_TRY(Tensor x, ctx.allocate(a.dtype(), shape));
    const LeastSquares system{all.rows, all.columns, sides.columns, l2};
    const std::int64_t size = all.columns * sides.columns;
    const T *from = a.data<T>(), *right = b.data<T>();
    T* to = x.mutable_data<T>();
    const double work =
        double(all.size()) * double(std::min(all.rows, all.columns) + sides.columns);
    TROUPE_TRY(for_matrices(ctx, count_for(all, {&x}), work, [&](std::int64_t i) -> Status {
      if (!all_finite(from + i * all.size(), all.size())) {
        fill_nan(to + i * size, size);
        return ok_status();
      }
      std::vector<double> solution;
      TROUPE_TRY(const bool full,
                 system.solve(as_doubles(from + i * all.size(), all.size()),
                              as_doubles(right + i * sides.size(), sides.size()), solution));
      if (!full)
        return bad_matrix(i, all.count,
                          "has not full rank: many solutions are equally good; l2_regularizer > 0 "
                          "would choose one");
      copy_to(solution, to + i * size);
      return ok_status();
    }));
    ctx.set_output(0, std::move(x));
    return ok_status();
  }
  const double l2;
};

std::vector<Output> least_squares_grad(GradContext& c) {
  const Output a = c.x[0], b = c.x[1], x = c.y[0], dx = c.dy[0];
  const double l2 = c.float_attr("l2_regularizer");
  const auto solved = [&](Output with, Output side) {
    return c.g.add("MatrixSolveLs", {with, side}, {{"l2_regularizer", l2}});
  };
  // x = P b with P = (a^T a + l2)^-1 a^T. P of a^T is that of a, transposed.
  const Output turned = transposed(a), db = solved(turned, dx);
  const Output residual = minus(b, product(a, x));
  if (l2 > 0) {
    const Output square = product(a, a, true);
    const Output diagonal = c.g.add("OnesLike", {c.g.add("MatrixDiagPart", {square})});
    const Output shift = c.g.add("MatrixDiag", {multiply(diagonal, scalar_like(diagonal, l2))});
    const Output z = c.g.add("MatrixSolve", {plus(square, shift), dx});
    return {minus(product(residual, z, false, true), product(product(a, z), x, false, true)), db};
  }
  // dP = -P da P + P P^T da^T (1 - a P) + (1 - P a) da^T P^T P, for full rank.
  const Output first = product(db, x, false, true);
  const Output second = product(residual, solved(a, db), false, true);
  const Output third = product(solved(turned, x), minus(dx, product(a, db, true)), false, true);
  return {plus(minus(second, first), third), db};
}

}  // namespace

TROUPE_OPS(matrix_solve_ls) {
  r.add({.name = "MatrixSolveLs",
         .in = {"a", "b"},
         .out = {"x"},
         .types = kReals,
         .attrs = {"l2_regularizer: float = 0.0"},
         .shape = least_squares_shape,
         .grad = least_squares_grad,
         .contraction = true,
         .doc = "The x that minimizes |a x - b|^2 + l2_regularizer |x|^2, column by column, for "
                "matrices a [..., m, n] and b [..., m, k] with equal batch dimensions; if a x = b "
                "has many solutions because m < n, the shortest. Computed in f64. An a without "
                "full rank is an error unless l2_regularizer is positive; one with non-finite "
                "elements gives NaN."})
      .cpu(typed_kernel<MatrixSolveLs, Reals>);
}
