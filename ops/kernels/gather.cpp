// Gather and its gradient: rows by index, and back.
#include <fmt/core.h>

#include "ops/kernels/args.hpp"
#include "ops/kernels/indices.hpp"
#include "ops/kernels/moves.hpp"
#include "ops/kernels/views.hpp"

using namespace troupe;

namespace {

Status gather_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  TROUPE_TRY(PartialShape shape, append(c.shape(1), c.shape(0), 1));
  c.set(0, std::move(shape));
  return ok_status();
}
void gather_ints(InferenceContext& c) {
  const KnownInts *params = c.known_ints(0), *indices = c.known_ints(1);
  if (!params || params->scalar || !indices) return;
  KnownInts out{indices->scalar, {}};
  for (const auto& at : indices->elements) {
    const bool inside = at && *at >= 0 && *at < params->size();
    out.elements.push_back(inside ? params->elements[std::size_t(*at)] : KnownInts::Element());
  }
  c.set_ints(0, std::move(out));
}
Status gather(KernelContext& ctx) {
  const Tensor &params = ctx.input(0), &indices = ctx.input(1);
  if (params.rank() < 1) return invalid_argument("params must have rank 1 or more, not []");
  TROUPE_TRY(PartialShape dims, append(indices.shape(), params.shape(), 1));
  TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
  TROUPE_TRY(Tensor y, ctx.allocate(params.dtype(), shape));
  TROUPE_TRY(check_indices(indices, params.dim(0)));
  const Moves moves(params.dtype());
  const void* from = params.raw();
  void* to = y.mutable_raw();
  const std::int64_t row = params.shape().elements(1, params.rank());
  const Chunks chunks = row_chunks(indices.elements(), row);
  if (y.elements() != 0)
    ctx.parallel(chunks.count, [&](std::int64_t c) {
      with_indices(indices, [=, r = chunks[c]](const auto* at) {
        for (std::int64_t i = r.begin; i < r.end; ++i)
          moves.copy(moves.at(from, at[i] * row), row, moves.at(to, i * row));
      });
    });
  ctx.set_output(0, std::move(y));
  return ok_status();
}
std::vector<Output> gather_grad(GradContext& c) {
  return {c.g.add("GatherGrad", {c.dy[0], c.x[1], c.g.add("Shape", {c.x[0]})}), Output()};
}

template <class T>
struct GatherGrad final : Kernel {
  Status compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(0), &indices = ctx.input(1);
    TROUPE_TRY(auto dims, host_ints(ctx.input(2), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    if (shape.rank() < 1) return invalid_argument("shape must have rank 1 or more");
    TROUPE_TRY(PartialShape fits, append(indices.shape(), shape, 1));
    if (fits != PartialShape(dy.shape()))
      return invalid_argument("dy is " + dy.shape().text() + ", not " + fits.text());
    return scatter_add<T>(ctx, shape);
  }
};
std::vector<Output> gather_grad_grad(GradContext& c) {
  return {c.g.add("Gather", {c.dy[0], c.x[1]}), Output(), Output()};
}
template <class T>
struct GatherAdd final : Kernel {
  Status compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(1), &indices = ctx.input(2);
    const Shape& shape = ctx.input(0).shape();
    if (shape.rank() < 1) return invalid_argument("sums must have rank 1 or more");
    TROUPE_TRY(PartialShape fits, append(indices.shape(), shape, 1));
    if (fits != PartialShape(dy.shape()))
      return invalid_argument("dy is " + dy.shape().text() + ", not " + fits.text());
    TROUPE_TRY(check_indices(indices, shape.dim(0)));
    TROUPE_TRY(Tensor sums, own_first_input(ctx));
    scatter_add<T>(ctx, dy, indices, sums);
    ctx.set_output(0, std::move(sums));
    return ok_status();
  }
};
std::vector<Output> gather_add_grad(GradContext& c) {
  return {c.dy[0], c.g.add("Gather", {c.dy[0], c.x[2]}), Output(), Output()};
}
Status gather_grad_shape(InferenceContext& c) { return set_shape_from(c, 2); }

}  // namespace

TROUPE_OPS(gather) {
  r.add({.name = "Gather",
         .in = {"params", "indices: Tindex"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = gather_shape,
         .value = gather_ints,
         .grad = gather_grad,
         .doc = "y[i, j, ...] = params[indices[i, j], ...]: slices along dimension 0. An index "
                "outside is an error."})
      .cpu(kernel<gather>);
  r.add({.name = "GatherGrad",
         .in = {"dy", "indices: Tindex", "shape: i64"},
         .out = {"dparams"},
         .types = kFloats,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = gather_grad_shape,
         .grad = gather_grad_grad,
         .host = {"shape"},
         .added = "GatherAdd",
         .doc = "The slices of dy added up where `indices` took them from, in a tensor of `shape`: "
                "the gradient of Gather."})
      .cpu(typed_kernel<GatherGrad, Floats>);
  r.add({.name = "GatherAdd",
         .in = {"sums", "dy", "indices: Tindex", "shape: i64"},
         .out = {"dparams"},
         .types = kFloats,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = same_shape,
         .grad = gather_add_grad,
         .host = {"shape"},
         .doc = "sums, of `shape`, with the slices of dy added where `indices` took them from: "
                "sums + GatherGrad(...)."})
      .cpu(typed_kernel<GatherAdd, Floats>);
}
