// UnsortedSegmentSum: rows added up by index.
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/kernels/sparse/segment_shape.hpp"

using namespace troupe;

namespace {

template <class T>
struct UnsortedSegmentSum final : Kernel {
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(const std::int64_t n, segment_count(ctx));
    TROUPE_TRY(PartialShape dims, folded_shape(ctx.input(0).shape(), ctx.input(1).shape(), n));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    return scatter_add<T>(ctx, shape);
  }
};
class SegmentSumOnGpu final : public cuda::DeviceKernel {
 public:
  explicit SegmentSumOnGpu(const KernelSpec& s)
      : dtype_(s.type()), fold_("AddRows", dtype_, true) {}
  std::span<cuda::GpuFunction> functions() override { return fold_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor &data = ctx.input(0), &ids = ctx.input(1);
    TROUPE_TRY(const std::int64_t n, segment_count(ctx));
    TROUPE_TRY(PartialShape dims, folded_shape(data.shape(), ids.shape(), n));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(check_indices(ids, n));
    TROUPE_TRY(Tensor sums, ctx.allocate(dtype_, shape));
    TROUPE_TRY(fold_.fill_zeros(ctx, sums));
    TROUPE_TRY(fold_.add(ctx, data, by_place(ids), places(ids),
                         {1, n, shape.elements(1, shape.rank())}, sums));
    ctx.set_output(0, std::move(sums));
    return ok_status();
  }

 private:
  DType dtype_;
  cuda::RowFolder fold_;
};
std::vector<Output> segment_sum_grad(GradContext& c) {
  return {c.g.add("Gather", {c.dy[0], c.x[1]}), Output(), Output()};
}

}  // namespace

TROUPE_OPS(unsorted_segment_sum) {
  r.add({.name = "UnsortedSegmentSum",
         .in = {"data", "segment_ids: Tindex", "num_segments: i64"},
         .out = {"sums"},
         .types = "f32 f64 f16 bf16 i32 i64 c64 c128",
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = unsorted_segments_shape,
         .grad = segment_sum_grad,
         .host = {"segment_ids", "num_segments"},
         .doc = "sums[s] = the sum of the slices of data whose id is s. segment_ids has the first "
                "dimensions of data; an id outside [0, num_segments) is an error."})
      .cpu(parts_kernel<UnsortedSegmentSum,
                        Types<float, double, half, bfloat16, std::int32_t, std::int64_t>>)
      .cuda(make_kernel<SegmentSumOnGpu>);
}
