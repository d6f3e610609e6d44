// UnsortedSegmentSum: rows added up by index.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"

using namespace troupe;

namespace {

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

}  // namespace

TROUPE_OPS(unsorted_segment_sum) {
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
