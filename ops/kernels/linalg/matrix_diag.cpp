// Diagonals of matrices, put there and taken, and matrices transposed: of the last dimensions,
// however many stand before them.
#include "ops/kernels/linalg/matrices.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

// Zeros in the shape of `y`, with diagonal i the next elements of `diagonals`.
Expected<Tensor> with_diagonals(KernelContext& ctx, const Tensor& diagonals, const Shape& shape) {
  TROUPE_TRY(Tensor y, ctx.allocate(diagonals.dtype(), shape));
  TROUPE_TRY(const Matrices all, matrices_of(y, "y"));
  const std::int64_t k = std::min(all.rows, all.columns);
  TROUPE_TRY(dispatch_size(dtype_size(y.dtype()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = moved_as<T>(diagonals);
    T* to = moved_as<T>(y);
    return for_matrices(ctx, count_for(all, {&y}), double(all.size()), [&](std::int64_t i) {
      if (all.size() != 0)
        std::memset(static_cast<void*>(to + i * all.size()), 0,
                    std::size_t(all.size()) * sizeof(T));
      for (std::int64_t j = 0; j < k; ++j)
        to[i * all.size() + j * (all.columns + 1)] = from[i * k + j];
      return ok_status();
    });
  }));
  return y;
}

Status diag_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  const PartialShape& x = c.shape(0);
  if (!x.known_rank()) return ok_status();
  std::vector<std::int64_t> dims = x.dims();
  dims.push_back(dims.back());
  TROUPE_TRY(PartialShape y, PartialShape::make(dims));
  c.set(0, std::move(y));
  return ok_status();
}
Status diag_kernel(KernelContext& ctx) {
  const Shape& x = ctx.input(0).shape();
  if (x.rank() == 0) return invalid_argument("x must have rank 1 or more, not []");
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
  dims.push_back(dims.back());
  TROUPE_TRY(const Shape shape, Shape::make(dims));
  TROUPE_TRY(Tensor y, with_diagonals(ctx, ctx.input(0), shape));
  ctx.set_output(0, std::move(y));
  return ok_status();
}
std::vector<Output> diag_grad(GradContext& c) { return {c.g.add("MatrixDiagPart", {c.dy[0]})}; }

Expected<PartialShape> without_last(const PartialShape& x, std::int64_t last) {
  if (!x.known_rank()) return x;
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end() - 2);
  dims.push_back(last);
  return PartialShape::make(dims);
}
Status diag_part_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 2));
  const std::int64_t m = dim_from_end(c.shape(0), 2), n = dim_from_end(c.shape(0), 1);
  TROUPE_TRY(PartialShape y, without_last(c.shape(0), m < 0 || n < 0 ? -1 : std::min(m, n)));
  c.set(0, std::move(y));
  return ok_status();
}
Status diag_part_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(const Matrices all, matrices_of(x, "x"));
  const std::int64_t k = std::min(all.rows, all.columns);
  std::vector<std::int64_t> dims(x.shape().dims().begin(), x.shape().dims().end() - 2);
  dims.push_back(k);
  TROUPE_TRY(const Shape shape, Shape::make(dims));
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  TROUPE_TRY(dispatch_size(dtype_size(x.dtype()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = moved_as<T>(x);
    T* to = moved_as<T>(y);
    return for_matrices(ctx, count_for(all, {&y}), double(k), [&](std::int64_t i) {
      for (std::int64_t j = 0; j < k; ++j)
        to[i * k + j] = from[i * all.size() + j * (all.columns + 1)];
      return ok_status();
    });
  }));
  ctx.set_output(0, std::move(y));
  return ok_status();
}
std::vector<Output> diag_part_grad(GradContext& c) {
  return {c.g.add("MatrixDiagPartGrad", {c.dy[0], c.x[0]})};
}

Status diag_part_grad_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  TROUPE_TRY(c.want_rank_at_least(1, 2));
  const PartialShape& x = c.shape(1);
  const std::int64_t m = dim_from_end(x, 2), n = dim_from_end(x, 1);
  TROUPE_TRY(PartialShape part, without_last(x, m < 0 || n < 0 ? -1 : std::min(m, n)));
  TROUPE_TRY(PartialShape::merge(part, c.shape(0)));
  c.set(0, x);
  return ok_status();
}
Status diag_part_grad_kernel(KernelContext& ctx) {
  const Tensor &dy = ctx.input(0), &x = ctx.input(1);
  TROUPE_TRY(const Matrices all, matrices_of(x, "x"));
  const std::int64_t k = std::min(all.rows, all.columns);
  bool fits = dy.rank() == x.rank() - 1 && dy.dim(dy.rank() - 1) == k;
  for (int i = 0; fits && i + 2 < x.rank(); ++i) fits = dy.dim(i) == x.dim(i);
  if (!fits)
    return invalid_argument(fmt::format("dy {} is not in the shape of the diagonals of x {}",
                                        dy.shape().text(), x.shape().text()));
  TROUPE_TRY(Tensor y, with_diagonals(ctx, dy, x.shape()));
  ctx.set_output(0, std::move(y));
  return ok_status();
}
std::vector<Output> diag_part_grad_grad(GradContext& c) {
  return {c.g.add("MatrixDiagPart", {c.dy[0]}), Output()};
}

Status matrix_transpose_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 2));
  TROUPE_TRY(PartialShape y,
             beside_batch(c.shape(0), {dim_from_end(c.shape(0), 1), dim_from_end(c.shape(0), 2)}));
  c.set(0, std::move(y));
  return ok_status();
}
Status matrix_transpose_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(const Matrices all, matrices_of(x, "x"));
  TROUPE_TRY(const Shape y, beside_batch(x.shape(), {all.columns, all.rows}));
  Strides strides = strides_of(x.shape());
  std::swap(strides[std::size_t(x.rank() - 1)], strides[std::size_t(x.rank() - 2)]);
  return view_copy(ctx, y, strides, 0);
}
std::vector<Output> matrix_transpose_grad(GradContext& c) { return {transposed(c.dy[0])}; }

}  // namespace

TROUPE_OPS(matrix_diag) {
  r.add({.name = "MatrixDiag",
         .in = {"x"},
         .out = {"y"},
         .types = kPlainTypes,
         .shape = diag_shape,
         .grad = diag_grad,
         .doc = "Square matrices with the last dimension of x on the diagonal and zeros (false) "
                "elsewhere: [..., n] gives [..., n, n]."})
      .cpu(kernel<diag_kernel>);
  r.add({.name = "MatrixDiagPart",
         .in = {"x"},
         .out = {"y"},
         .types = kPlainTypes,
         .shape = diag_part_shape,
         .grad = diag_part_grad,
         .doc = "The diagonals of matrices: [..., m, n] gives [..., min(m, n)]."})
      .cpu(kernel<diag_part_kernel>);
  r.add({.name = "MatrixDiagPartGrad",
         .in = {"dy", "x"},
         .out = {"dx"},
         .types = kPlainTypes,
         .shape = diag_part_grad_shape,
         .grad = diag_part_grad_grad,
         .doc = "The gradient of MatrixDiagPart: zeros in the shape of x, with dy on the "
                "diagonals."})
      .cpu(kernel<diag_part_grad_kernel>);
  r.add({.name = "MatrixTranspose",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .shape = matrix_transpose_shape,
         .grad = matrix_transpose_grad,
         .doc = "x with its last two dimensions exchanged: [..., m, n] gives [..., n, m]. The rank "
                "may be unknown when the graph is built."})
      .cpu(kernel<matrix_transpose_kernel>);
}
