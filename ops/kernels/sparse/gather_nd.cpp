// GatherNd and ScatterNd: slices by indices into several dimensions, and back.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"

using namespace troupe;

namespace {

// The dimensions of `indices` but for the last one, which says into how many dimensions of `params`
// they go, then the dimensions of `params` behind those.
Expected<PartialShape> slices_shape(const PartialShape& params, const PartialShape& indices) {
  if (!indices.known_rank()) return PartialShape::unknown();
  if (indices.rank() == 0) return invalid_argument("indices must have rank 1 or more, not []");
  const std::int64_t depth = indices.dim(indices.rank() - 1);
  if (depth == PartialShape::kUnknown || !params.known_rank()) return PartialShape::unknown();
  if (depth > params.rank())
    return invalid_argument(fmt::format("indices {} have {} parts for the {} dimensions of {}",
                                        indices.text(), depth, params.rank(), params.text()));
  std::vector<std::int64_t> dims(indices.dims().begin(), indices.dims().end() - 1);
  dims.insert(dims.end(), params.dims().begin() + depth, params.dims().end());
  return PartialShape::make(dims);
}

// take(k, number) for each slice that `indices` name, on all lanes; `row` elements are moved for
// each. invalid_argument names the first part of an index that is outside. REQUIRES: slices_shape
// was asked.
template <class Take>
Status for_slices(const KernelContext& ctx, const Shape& params, const Tensor& indices,
                  std::int64_t row, Take take) {
  const int depth = int(indices.dim(indices.rank() - 1));
  const std::vector<std::int64_t> sizes(params.dims().begin(), params.dims().begin() + depth);
  const Chunks chunks =
      row_chunks(indices.shape().elements(0, indices.rank() - 1), std::max<std::int64_t>(row, 4));
  std::vector<Status> found(std::size_t(chunks.count));
  with_indices(indices, [&](const auto* at) {
    ctx.parallel(chunks.count, [&](std::int64_t c) {
      for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k) {
        // As unsigned: of an empty tensor the other dimensions may be huge, and nothing is taken.
        std::uint64_t number = 0;
        for (int d = 0; d < depth; ++d) {
          const std::int64_t part = at[k * depth + d], size = sizes[std::size_t(d)];
          if (part < 0 || part >= size) {
            found[std::size_t(c)] = invalid_argument(
                fmt::format("indices[{}, {}] = {} is outside [0, {})", k, d, part, size));
            return;
          }
          number = number * std::uint64_t(size) + std::uint64_t(part);
        }
        take(k, std::int64_t(number));
      }
    });
  });
  for (Status& status : found) TROUPE_TRY(std::move(status));
  return ok_status();
}

// The numbers of the slices, as a vector in host memory.
Expected<Tensor> slice_numbers(const KernelContext& ctx, const Shape& params,
                               const Tensor& indices) {
  const std::int64_t n = indices.shape().elements(0, indices.rank() - 1);
  TROUPE_TRY(Tensor numbers, ctx.allocate_host(DType::i64, Shape{n}));
  std::int64_t* out = numbers.mutable_data<std::int64_t>();
  TROUPE_TRY(for_slices(ctx, params, indices, 1,
                        [out](std::int64_t k, std::int64_t number) { out[k] = number; }));
  return numbers;
}

Status gather_nd_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, slices_shape(c.shape(0), c.shape(1)));
  c.set(0, std::move(shape));
  return ok_status();
}
Expected<Tensor> room_for_slices(const KernelContext& ctx, const Tensor& params,
                                 const Tensor& indices) {
  TROUPE_TRY(const PartialShape dims, slices_shape(params.shape(), indices.shape()));
  TROUPE_TRY(const Shape shape, Shape::make(dims.dims()));
  return ctx.allocate(params.dtype(), shape);
}
// Where neither indices nor slices have elements, there may be any number of them, and nothing is
// looked up.
bool names_none(const Tensor& indices, const Tensor& slices) {
  return indices.elements() == 0 && slices.elements() == 0;
}
Status gather_nd(KernelContext& ctx) {
  const Tensor &params = ctx.input(0), &indices = ctx.input(1);
  TROUPE_TRY(Tensor y, room_for_slices(ctx, params, indices));
  const std::int64_t row =
      params.shape().elements(int(indices.dim(indices.rank() - 1)), params.rank());
  const Moves moves(params.dtype());
  const void* from = params.raw();
  void* to = y.mutable_raw();
  const bool some = y.elements() != 0;
  if (!names_none(indices, y))
    TROUPE_TRY(
        for_slices(ctx, params.shape(), indices, row, [=](std::int64_t k, std::int64_t number) {
          if (some) moves.copy(moves.at(from, number * row), row, moves.at(to, k * row));
        }));
  ctx.set_output(0, std::move(y));
  return ok_status();
}
class GatherNdOnGpu final : public cuda::DeviceKernel {
 public:
  explicit GatherNdOnGpu(const KernelSpec& s) : take_(s.type(), DType::i64) {}
  std::span<cuda::GpuFunction> functions() override { return take_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor &params = ctx.input(0), &indices = ctx.input(1);
    TROUPE_TRY(Tensor y, room_for_slices(ctx, params, indices));
    if (names_none(indices, y)) {
      ctx.set_output(0, std::move(y));
      return ok_status();
    }
    TROUPE_TRY(Tensor numbers, slice_numbers(ctx, params.shape(), indices));
    const int depth = int(indices.dim(indices.rank() - 1));
    const cuda::RowView rows{1, params.shape().elements(0, depth),
                             params.shape().elements(depth, params.rank())};
    TROUPE_TRY(take_(ctx, params, rows, numbers, y));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  cuda::RowTaker take_;
};
std::vector<Output> gather_nd_grad(GradContext& c) {
  return {c.g.add("ScatterNd", {c.x[1], c.dy[0], c.g.add("Shape", {c.x[0]})}), Output()};
}

Status check_updates(const PartialShape& shape, const PartialShape& indices,
                     const PartialShape& updates) {
  TROUPE_TRY(PartialShape wanted, slices_shape(shape, indices));
  if (PartialShape::merge(wanted, updates).ok()) return ok_status();
  return invalid_argument(fmt::format("updates are {}, but indices {} into {} want {}",
                                      updates.text(), indices.text(), shape.text(), wanted.text()));
}
Status scatter_nd_shape(InferenceContext& c) {
  TROUPE_TRY(set_shape_from(c, 2));
  return check_updates(c.result()[0], c.shape(0), c.shape(1));
}
template <class T>
struct ScatterNd final : Kernel {
  Status compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &updates = ctx.input(1);
    TROUPE_TRY(auto dims, host_ints(ctx.input(2), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    TROUPE_TRY(check_updates(shape, indices.shape(), updates.shape()));
    TROUPE_TRY(Tensor numbers, slice_numbers(ctx, shape, indices));
    TROUPE_TRY(Tensor sums, ctx.allocate(updates.dtype(), shape));
    fill_zeros(ctx, sums);
    if (numbers.elements() != 0 && sums.elements() != 0) {
      const int depth = int(indices.dim(indices.rank() - 1));
      Tensor rows =
          sums.reshaped(Shape{shape.elements(0, depth), shape.elements(depth, shape.rank())});
      scatter_add<T>(ctx, updates, numbers, rows);
    }
    ctx.set_output(0, std::move(sums));
    return ok_status();
  }
};
class ScatterNdOnGpu final : public cuda::DeviceKernel {
 public:
  explicit ScatterNdOnGpu(const KernelSpec& s) : dtype_(s.type()), fold_("AddRows", dtype_, true) {}
  std::span<cuda::GpuFunction> functions() override { return fold_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &updates = ctx.input(1);
    TROUPE_TRY(auto dims, host_ints(ctx.input(2), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    TROUPE_TRY(check_updates(shape, indices.shape(), updates.shape()));
    TROUPE_TRY(Tensor numbers, slice_numbers(ctx, shape, indices));
    TROUPE_TRY(Tensor sums, ctx.allocate(dtype_, shape));
    TROUPE_TRY(fold_.fill_zeros(ctx, sums));
    const int depth = int(indices.dim(indices.rank() - 1));
    if (sums.elements() != 0)
      TROUPE_TRY(fold_.add(ctx, updates, by_place(numbers), places(numbers),
                           {1, shape.elements(0, depth), shape.elements(depth, shape.rank())},
                           sums));
    ctx.set_output(0, std::move(sums));
    return ok_status();
  }

 private:
  DType dtype_;
  cuda::RowFolder fold_;
};
std::vector<Output> scatter_nd_grad(GradContext& c) {
  return {Output(), c.g.add("GatherNd", {c.dy[0], c.x[0]}), Output()};
}

}  // namespace

TROUPE_OPS(gather_nd) {
  r.add({.name = "GatherNd",
         .in = {"params", "indices: Tindex"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = gather_nd_shape,
         .grad = gather_nd_grad,
         .host = {"indices"},
         .doc = "y[i, j, ...] = params[indices[i, j, 0], indices[i, j, 1], ..., ...]: each entry "
                "of the last dimension of indices is an index into one of the first dimensions of "
                "params. An index out of range is an error."})
      .cpu(kernel<gather_nd>)
      .cuda(make_kernel<GatherNdOnGpu>, kPlainTypes);
  r.add({.name = "ScatterNd",
         .in = {"indices: Tindex", "updates", "shape: i64"},
         .out = {"y"},
         .types = "f32 f64 f16 bf16 i32 i64 c64 c128",
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = scatter_nd_shape,
         .grad = scatter_nd_grad,
         .host = {"indices", "shape"},
         .doc = "Zeros of `shape` with the slices of updates added, in order, at the indices that "
                "GatherNd would take them from. An index out of range is an error."})
      .cpu(
          parts_kernel<ScatterNd, Types<float, double, half, bfloat16, std::int32_t, std::int64_t>>)
      .cuda(make_kernel<ScatterNdOnGpu>);
}
