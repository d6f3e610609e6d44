// Gather and its gradient: rows by index, and back.
#include <fmt/core.h>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

Status gather_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  TROUPE_TRY(PartialShape shape, gathered_shape(c.shape(1), c.shape(0), c.int_attr("axis")));
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
struct Gather final : Kernel {
  explicit Gather(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &params = ctx.input(0), &indices = ctx.input(1);
    TROUPE_TRY(PartialShape dims, gathered_shape(indices.shape(), params.shape(), axis));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(const int along, checked_axis(axis, params.rank()));
    TROUPE_TRY(Tensor y, ctx.allocate(params.dtype(), shape));
    TROUPE_TRY(check_indices(indices, params.dim(along)));
    const Moves moves(params.dtype());
    const void* from = params.raw();
    void* to = y.mutable_raw();
    const RowBlocks blocks(params.shape(), along);
    const std::int64_t n = indices.elements(), row = blocks.row;
    const Chunks chunks = row_chunks(blocks.outer * n, row);
    if (y.elements() != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        with_indices(indices, [&, r = chunks[c]](const auto* at) {
          std::int64_t block = r.begin / n, i = r.begin % n;
          const std::size_t bytes = std::size_t(row) * dtype_size(params.dtype());
          const std::int64_t ahead = rows_ahead(bytes);
          for (std::int64_t k = r.begin; k < r.end; ++k) {
            if (i + ahead < n)
              fetch_soon(moves.at(from, (block * blocks.size + at[i + ahead]) * row), bytes);
            moves.copy(moves.at(from, (block * blocks.size + at[i]) * row), row,
                       moves.at(to, k * row));
            if (++i == n) i = 0, ++block;
          }
        });
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t axis;
};
class GatherOnGpu final : public cuda::DeviceKernel {
 public:
  explicit GatherOnGpu(const KernelSpec& s)
      : axis_(s.int_attr("axis")), take_(s.type(), s.type("Tindex")) {}
  std::span<cuda::GpuFunction> functions() override { return take_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor &params = ctx.input(0), &indices = ctx.input(1);
    TROUPE_TRY(PartialShape dims, gathered_shape(indices.shape(), params.shape(), axis_));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(const int along, checked_axis(axis_, params.rank()));
    TROUPE_TRY(check_indices(indices, params.dim(along)));
    TROUPE_TRY(Tensor y, ctx.allocate(params.dtype(), shape));
    const RowBlocks blocks(params.shape(), along);
    TROUPE_TRY(take_(ctx, params, {blocks.outer, blocks.size, blocks.row}, indices, y));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  std::int64_t axis_;
  cuda::RowTaker take_;
};
AttrMap with_axis(GradContext& c) { return {{"axis", c.int_attr("axis")}}; }
std::vector<Output> gather_grad(GradContext& c) {
  return {c.g.add("GatherGrad", {c.dy[0], c.x[1], c.g.add("Shape", {c.x[0]})}, with_axis(c)),
          Output()};
}

Status check_slices(const Tensor& dy, const Tensor& indices, const Shape& shape,
                    std::int64_t axis) {
  TROUPE_TRY(PartialShape fits, gathered_shape(indices.shape(), shape, axis));
  if (fits == PartialShape(dy.shape())) return ok_status();
  return invalid_argument("dy is " + dy.shape().text() + ", not " + fits.text());
}
template <class T>
struct GatherGrad final : Kernel {
  explicit GatherGrad(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(auto dims, host_ints(ctx.input(2), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    TROUPE_TRY(check_slices(ctx.input(0), ctx.input(1), shape, axis));
    TROUPE_TRY(const int along, checked_axis(axis, shape.rank()));
    return scatter_add<T>(ctx, shape, along);
  }
  std::int64_t axis;
};
std::vector<Output> gather_grad_grad(GradContext& c) {
  return {c.g.add("Gather", {c.dy[0], c.x[1]}, with_axis(c)), Output(), Output()};
}
template <class T>
struct GatherAdd final : Kernel {
  explicit GatherAdd(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(1), &indices = ctx.input(2);
    const Shape shape = ctx.input(0).shape();
    TROUPE_TRY(check_slices(dy, indices, shape, axis));
    TROUPE_TRY(const int along, checked_axis(axis, shape.rank()));
    TROUPE_TRY(check_indices(indices, shape.dim(along)));
    TROUPE_TRY(Tensor sums, own_first_input(ctx));
    scatter_add<T>(ctx, dy, indices, sums, along);
    ctx.set_output(0, std::move(sums));
    return ok_status();
  }
  std::int64_t axis;
};

// GatherGrad, or GatherAdd, which has the sums before its other inputs.
class GatherGradOnGpu final : public cuda::DeviceKernel {
 public:
  explicit GatherGradOnGpu(const KernelSpec& s)
      : axis_(s.int_attr("axis")),
        adds_(s.node.op == "GatherAdd"),
        fold_("AddRows", s.type(), false) {}
  std::span<cuda::GpuFunction> functions() override { return fold_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(adds_ ? 1 : 0), &indices = ctx.input(adds_ ? 2 : 1);
    Shape shape = ctx.input(0).shape();
    if (!adds_) {
      TROUPE_TRY(auto dims, host_ints(ctx.input(2), "shape"));
      TROUPE_TRY(shape, checked_shape(dims));
    }
    TROUPE_TRY(check_slices(dy, indices, shape, axis_));
    TROUPE_TRY(const int along, checked_axis(axis_, shape.rank()));
    TROUPE_TRY(check_indices(indices, shape.dim(along)));
    TROUPE_TRY(Tensor sums, adds_ ? ctx.reuse_or_allocate(0, dy.dtype(), shape)
                                  : ctx.allocate(dy.dtype(), shape));
    if (!adds_)
      TROUPE_TRY(fold_.fill_zeros(ctx, sums));
    else if (sums.raw() != ctx.input(0).raw())
      ctx.device().copy(ctx.input(0), sums);
    const RowBlocks blocks(shape, along);
    TROUPE_TRY(fold_.add(ctx, dy, by_place(indices), places(indices),
                         {blocks.outer, blocks.size, blocks.row}, sums));
    ctx.set_output(0, std::move(sums));
    return ok_status();
  }

 private:
  std::int64_t axis_;
  bool adds_;
  cuda::RowFolder fold_;
};
std::vector<Output> gather_add_grad(GradContext& c) {
  return {c.dy[0], c.g.add("Gather", {c.dy[0], c.x[2]}, with_axis(c)), Output(), Output()};
}
Status gather_grad_shape(InferenceContext& c) { return set_shape_from(c, 2); }

}  // namespace

TROUPE_OPS(gather) {
  r.add({.name = "Gather",
         .in = {"params", "indices: Tindex"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axis: int = 0", "Tindex: type {i32 i64} = i64"},
         .shape = gather_shape,
         .value = gather_ints,
         .grad = gather_grad,
         .host = {"indices"},
         .doc = "y[i, j, ...] = params[indices[i, j], ...]: slices along dimension 0, or along "
                "`axis`: y[..., i, j, ...] = params[..., indices[i, j], ...]. An index out of "
                "range is an error."})
      .cpu(make_kernel<Gather>)
      .cuda(make_kernel<GatherOnGpu>, kPlainTypes);
  r.add({.name = "GatherGrad",
         .in = {"dy", "indices: Tindex", "shape: i64"},
         .out = {"dparams"},
         .types = kFloatsAndComplex,
         .attrs = {"axis: int = 0", "Tindex: type {i32 i64} = i64"},
         .shape = gather_grad_shape,
         .grad = gather_grad_grad,
         .host = {"indices", "shape"},
         .added = "GatherAdd",
         .doc = "The slices of dy added to zeros of `shape` where `indices` took them from along "
                "`axis`: the gradient of Gather."})
      .cpu(parts_kernel<GatherGrad, Floats>)
      .cuda(make_kernel<GatherGradOnGpu>);
  r.add({.name = "GatherAdd",
         .in = {"sums", "dy", "indices: Tindex", "shape: i64"},
         .out = {"dparams"},
         .types = kFloatsAndComplex,
         .attrs = {"axis: int = 0", "Tindex: type {i32 i64} = i64"},
         .shape = same_shape,
         .grad = gather_add_grad,
         .host = {"indices", "shape"},
         .doc = "sums (of `shape`) with the slices of dy added where `indices` took them from: "
                "sums + GatherGrad(...)."})
      .cpu(parts_kernel<GatherAdd, Floats>)
      .cuda(make_kernel<GatherGradOnGpu>);
}
