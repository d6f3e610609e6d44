// Rows by index, and back: Gather, GatherGrad, UnsortedSegmentSum, OneHot.
#include <fmt/core.h>

#include "troupe/ops/kernels/args.hpp"
#include "troupe/ops/kernels/elementwise.hpp"
#include "troupe/ops/kernels/moves.hpp"

using namespace troupe;

namespace {

// f(the elements of a tensor of i32 or i64).
template <class F>
void with_indices(const Tensor& indices, F&& f) {
  if (indices.dtype() == DType::i32)
    f(indices.data<std::int32_t>());
  else
    f(indices.data<std::int64_t>());
}

// invalid_argument naming the first index outside [0, limit).
Status check_indices(const Tensor& indices, std::int64_t limit) {
  Status status;
  with_indices(indices, [&](const auto* at) {
    for (std::int64_t i = 0; i < indices.elements() && status.ok(); ++i)
      if (at[i] < 0 || at[i] >= limit)
        status =
            invalid_argument(fmt::format("indices[{}] = {} is outside [0, {})", i, at[i], limit));
  });
  return status;
}

// The dimensions of `a`, then those of `b` from dimension `from` on.
Expected<PartialShape> append(const PartialShape& a, const PartialShape& b, int from) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape::unknown();
  auto dims = a.dims();
  for (int i = from; i < b.rank(); ++i) dims.push_back(b.dim(i));
  return PartialShape::make(dims);
}

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

// sums[indices[i]] += rows[i], in the order of i. Lanes share the columns, so that every sum is
// one lane's and its order is fixed.
template <class T>
Status scatter_add(KernelContext& ctx, const Shape& shape) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1);
  TROUPE_TRY(check_indices(indices, shape.dim(0)));
  const std::int64_t row = shape.elements(1, shape.rank());
  TROUPE_TRY(Tensor sums, ctx.allocate(data.dtype(), shape));
  T* to = sums.mutable_data<T>();
  for_chunks(ctx, sums.elements(), [&](Range r) { std::fill_n(to + r.begin, r.size(), T(0)); });
  const Chunks columns = Chunks::of_step(row, 256);
  if (row != 0)
    ctx.parallel(columns.count, [&](std::int64_t c) {
      with_indices(indices, [&, r = columns[c], from = data.data<T>()](const auto* at) {
        for (std::int64_t i = 0; i < indices.elements(); ++i)
          each(r.size(), [sum = to + at[i] * row + r.begin, add = from + i * row + r.begin](
                             std::int64_t k) { sum[k] = T(sum[k] + add[k]); });
      });
    });
  ctx.set_output(0, std::move(sums));
  return ok_status();
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
Status gather_grad_shape(InferenceContext& c) { return set_shape_from(c, 2); }

// [segments] + the dimensions of data behind those of the ids.
Expected<PartialShape> segment_sums_shape(const PartialShape& data, const PartialShape& ids,
                                          std::int64_t segments) {
  if (!data.known_rank() || !ids.known_rank()) return PartialShape::unknown();
  for (int i = 0; i < ids.rank(); ++i) {
    const bool fits =
        i < data.rank() && (!data.known(i) || !ids.known(i) || data.dim(i) == ids.dim(i));
    if (!fits)
      return invalid_argument(fmt::format("segment_ids {} must be the first dimensions of data {}",
                                          ids.text(), data.text()));
  }
  return append(PartialShape{segments}, data, ids.rank());
}
Status segment_sum_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(2, 0));
  auto n = c.ints(2);
  if (n && (*n)[0] < 0) return invalid_argument("num_segments must not be negative");
  TROUPE_TRY(PartialShape shape, segment_sums_shape(c.shape(0), c.shape(1), n ? (*n)[0] : -1));
  c.set(0, std::move(shape));
  return ok_status();
}
template <class T>
struct UnsortedSegmentSum final : Kernel {
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(auto n, host_ints(ctx.input(2), "num_segments"));
    if (n.size() != 1 || n[0] < 0)
      return invalid_argument("num_segments must be a scalar, not negative");
    TROUPE_TRY(PartialShape dims,
               segment_sums_shape(ctx.input(0).shape(), ctx.input(1).shape(), n[0]));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    return scatter_add<T>(ctx, shape);
  }
};
std::vector<Output> segment_sum_grad(GradContext& c) {
  return {c.g.add("Gather", {c.dy[0], c.x[1]}), Output(), Output()};
}

Status one_hot_shape(InferenceContext& c) {
  if (c.int_attr("depth") < 0) return invalid_argument("depth must not be negative");
  if (!c.shape(0).known_rank()) return ok_status();
  TROUPE_TRY(PartialShape shape, append(c.shape(0), PartialShape{c.int_attr("depth")}, 0));
  c.set(0, std::move(shape));
  return ok_status();
}
template <class T>
struct OneHot final : Kernel {
  explicit OneHot(const KernelSpec& s)
      : depth(s.int_attr("depth")),
        on(T(Compute<T>(s.float_attr("on")))),
        off(T(Compute<T>(s.float_attr("off")))) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    TROUPE_TRY(PartialShape dims, append(indices.shape(), PartialShape{depth}, 0));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, shape));
    T* out = y.mutable_data<T>();
    std::fill_n(out, y.elements(), off);
    for (std::int64_t i = 0; i < indices.elements(); ++i) {
      const std::int64_t at = indices.dtype() == DType::i32 ? indices.data<std::int32_t>()[i]
                                                            : indices.data<std::int64_t>()[i];
      if (at >= 0 && at < depth) out[i * depth + at] = on;
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t depth;
  T on, off;
};

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
         .doc = "The slices of dy added up where `indices` took them from, in a tensor of `shape`: "
                "the gradient of Gather."})
      .cpu(typed_kernel<GatherGrad, Floats>);
  r.add({.name = "UnsortedSegmentSum",
         .in = {"data", "segment_ids: Tindex", "num_segments: i64"},
         .out = {"sums"},
         .types = "f32 f64 f16 bf16 i32 i64",
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = segment_sum_shape,
         .grad = segment_sum_grad,
         .host = {"num_segments"},
         .doc = "sums[s] = the sum of the slices of data whose id is s. The shape of segment_ids "
                "is the beginning of data's; an id outside [0, num_segments) is an error."})
      .cpu(typed_kernel<UnsortedSegmentSum,
                        Types<float, double, half, bfloat16, std::int32_t, std::int64_t>>);
}

TROUPE_OPS(one_hot) {
  r.add({.name = "OneHot",
         .in = {"indices: Tindex"},
         .out = {"y"},
         .types = kNumbersAndBool,
         .attrs = {"T: type = f32", "Tindex: type {i32 i64} = i64", "depth: int", "on: float = 1.0",
                   "off: float = 0.0"},
         .shape = one_hot_shape,
         .no_gradient = "computed of integers",
         .doc = "A new last dimension of size `depth`: `on` at the index, `off` elsewhere; all off "
                "for an index outside."})
      .cpu(typed_kernel<OneHot, NumbersAndBool>);
}
