// TakeAlong and ScatterAlong: elements by their place along one dimension, and back.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"

using namespace troupe;

namespace {

// The shape of `indices`, which is that of `x` but for dimension `axis`.
Expected<PartialShape> taken_shape(const PartialShape& x, const PartialShape& indices,
                                   std::int64_t axis) {
  if (!x.known_rank()) return indices;
  TROUPE_TRY(const int along, checked_axis(axis, x.rank()));
  auto dims = x.dims();
  dims[std::size_t(along)] = PartialShape::kUnknown;
  if (indices.known_rank() && indices.rank() == x.rank())
    dims[std::size_t(along)] = indices.dim(along);
  TROUPE_TRY(PartialShape wanted, PartialShape::make(dims));
  auto merged = PartialShape::merge(wanted, indices);
  if (merged.ok()) return merged;
  return invalid_argument(fmt::format("indices {} must be as x {} but for dimension {}",
                                      indices.text(), x.text(), along));
}

Status take_along_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, taken_shape(c.shape(0), c.shape(1), c.int_attr("axis")));
  c.set(0, std::move(shape));
  return ok_status();
}
struct TakeAlong final : Kernel {
  explicit TakeAlong(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &x = ctx.input(0), &indices = ctx.input(1);
    TROUPE_TRY(PartialShape fits, taken_shape(x.shape(), indices.shape(), axis));
    TROUPE_TRY(const int along, checked_axis(axis, x.rank()));
    TROUPE_TRY(check_indices(indices, x.dim(along)));
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), indices.shape()));
    const Moves moves(x.dtype());
    const RowBlocks from(x.shape(), along), to(indices.shape(), along);
    const void* in = x.raw();
    void* out = y.mutable_raw();
    for_chunks(ctx, y.elements(), [&](Range r) {
      with_indices(indices, [&](const auto* at) {
        for (std::int64_t k = r.begin; k < r.end; ++k) {
          const std::int64_t column = k % to.row, block = k / to.row / to.size;
          moves.copy(moves.at(in, (block * from.size + at[k]) * from.row + column), 1,
                     moves.at(out, k));
        }
      });
    });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t axis;
};
std::vector<Output> take_along_grad(GradContext& c) {
  return {c.g.add("ScatterAlong", {c.dy[0], c.x[1], c.g.add("Shape", {c.x[0]})},
                  {{"axis", c.int_attr("axis")}}),
          Output()};
}

Status scatter_along_shape(InferenceContext& c) { return set_shape_from(c, 2); }
template <class T>
struct ScatterAlong final : Kernel {
  explicit ScatterAlong(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(0), &indices = ctx.input(1);
    TROUPE_TRY(auto dims, host_ints(ctx.input(2), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    TROUPE_TRY(PartialShape fits, taken_shape(shape, indices.shape(), axis));
    if (dy.shape() != indices.shape())
      return invalid_argument(
          fmt::format("dy is {}, indices are {}", dy.shape().text(), indices.shape().text()));
    TROUPE_TRY(const int along, checked_axis(axis, shape.rank()));
    TROUPE_TRY(check_indices(indices, shape.dim(along)));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, shape));
    const RowBlocks to(shape, along), from(indices.shape(), along);
    T* out = y.mutable_data<T>();
    const T* in = dy.data<T>();
    // A line along the axis is one lane's, and its sums are rounded once.
    const Chunks chunks = row_chunks(to.outer * to.row, to.size + from.size);
    if (chunks.count != 0 && y.elements() != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        std::vector<Compute<T>> line(std::size_t(to.size));
        with_indices(indices, [&](const auto* at) {
          for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k) {
            const std::int64_t block = k / to.row, column = k % to.row;
            std::fill(line.begin(), line.end(), Compute<T>(0));
            for (std::int64_t i = 0; i < from.size; ++i) {
              const std::int64_t j = (block * from.size + i) * from.row + column;
              line[std::size_t(at[j])] += Compute<T>(in[j]);
            }
            for (std::int64_t i = 0; i < to.size; ++i)
              out[(block * to.size + i) * to.row + column] = T(line[std::size_t(i)]);
          }
        });
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t axis;
};
std::vector<Output> scatter_along_grad(GradContext& c) {
  return {c.g.add("TakeAlong", {c.dy[0], c.x[1]}, {{"axis", c.int_attr("axis")}}), Output(),
          Output()};
}

}  // namespace

TROUPE_OPS(along) {
  r.add({.name = "TakeAlong",
         .in = {"x", "indices: Tindex"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axis: int = -1", "Tindex: type {i32 i64} = i64"},
         .shape = take_along_shape,
         .grad = take_along_grad,
         .doc = "y[.., i, ..] = x[.., indices[.., i, ..], ..]: elements by their position along "
                "`axis`, as returned by TopK, Sort and ArgSort. The other dimensions are equal; an "
                "index out of range is an error."})
      .cpu(make_kernel<TakeAlong>);
  r.add({.name = "ScatterAlong",
         .in = {"dy", "indices: Tindex", "shape: i64"},
         .out = {"dx"},
         .types = kFloatsAndComplex,
         .attrs = {"axis: int = -1", "Tindex: type {i32 i64} = i64"},
         .shape = scatter_along_shape,
         .grad = scatter_along_grad,
         .host = {"shape"},
         .doc = "The elements of dy added, in order, to zeros of `shape` where `indices` took them "
                "from along `axis`: the gradient of TakeAlong."})
      .cpu(typed_kernel<ScatterAlong, FloatsAndComplex>);
}
