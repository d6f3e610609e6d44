// To a larger shape and back: BroadcastTo, SumToShape, SumToShapeOf.
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/cuda/reduce.hpp"
#include "ops/formulas/reduction.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/reduce.hpp"

using namespace troupe;

namespace {

// Which dimensions of `x` a sum to `target` adds up: those where target has 1 or nothing.
Expected<std::vector<bool>> summed(const Shape& x, const Shape& target) {
  std::vector<bool> sum(std::size_t(x.rank()));
  for (int d = 1; d <= x.rank(); ++d) {
    const std::int64_t mine = x.dim(x.rank() - d);
    const std::int64_t theirs = d <= target.rank() ? target.dim(target.rank() - d) : 1;
    sum[std::size_t(x.rank() - d)] = theirs == 1 && (mine != 1 || d > target.rank());
    if (theirs != 1 && theirs != mine)
      return invalid_argument("a sum over " + x.text() + " cannot have shape " + target.text());
  }
  if (x.rank() < target.rank())
    return invalid_argument("a sum over " + x.text() + " cannot have shape " + target.text());
  return sum;
}
Status check_summed(const PartialShape& x, const PartialShape& target) {
  if (!x.fully_known() || !target.fully_known()) return ok_status();
  return detail::as_status(summed(x.shape(), target.shape()));
}
Status sum_to(KernelContext& ctx, const Shape& target) {
  const Tensor& x = ctx.input(0);
  if (x.shape() == target) {
    ctx.set_output(0, x);
    return ok_status();
  }
  TROUPE_TRY(auto axes, summed(x.shape(), target));
  TROUPE_TRY(Tensor y, reduce(ctx, sum_table(x.dtype()), x, std::move(axes), target));
  ctx.set_output(0, std::move(y));
  return ok_status();
}

Status sum_to_shape_shape(InferenceContext& c) {
  if (!c.shape_attr("shape").fully_known())
    return invalid_argument("shape must be known, not " + c.shape_attr("shape").text());
  TROUPE_TRY(check_summed(c.shape(0), c.shape_attr("shape")));
  c.set(0, c.shape_attr("shape"));
  return ok_status();
}
struct SumToShape final : Kernel {
  explicit SumToShape(const KernelSpec& s) : target(s.shape_attr("shape").shape()) {}
  Status compute(KernelContext& ctx) override { return sum_to(ctx, target); }
  Shape target;
};
std::vector<Output> sum_to_shape_grad(GradContext& c) {
  return {c.g.add("BroadcastTo", {c.dy[0], c.g.add("Shape", {c.x[0]})})};
}

Status sum_to_shape_of_shape(InferenceContext& c) {
  TROUPE_TRY(check_summed(c.shape(0), c.shape(1)));
  c.set(0, c.shape(1));
  return ok_status();
}
Status sum_to_like(KernelContext& ctx) { return sum_to(ctx, ctx.input(1).shape()); }
std::vector<Output> sum_to_shape_of_grad(GradContext& c) {
  return {c.g.add("BroadcastTo", {c.dy[0], c.g.add("Shape", {c.x[0]})}), Output()};
}

Status broadcast_to_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape target, c.listed_shape(1));
  c.set(0, target);
  if (target.fully_known()) {
    TROUPE_TRY(PartialShape both, broadcast(c.shape(0), target));
    if (both.fully_known() && both != target)
      return invalid_argument(c.shape(0).text() + " does not broadcast to " + target.text());
  }
  return ok_status();
}
Status broadcast_to(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(auto dims, host_ints(ctx.input(1), "shape"));
  TROUPE_TRY(Shape shape, checked_shape(dims));
  TROUPE_TRY(auto meet, Broadcast<2>::of({&shape, &x.shape()}));
  if (meet.out() != shape)
    return invalid_argument(x.shape().text() + " does not broadcast to " + shape.text());
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  repeat_tensor(ctx, meet, x, y);
  ctx.set_output(0, std::move(y));
  return ok_status();
}
class BroadcastToOnGpu final : public cuda::DeviceKernel {
 public:
  explicit BroadcastToOnGpu(const KernelSpec& s) : repeat_(s.type()) {}
  std::span<cuda::GpuFunction> functions() override { return repeat_.functions(); }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(auto dims, host_ints(ctx.input(1), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    TROUPE_TRY(Tensor y, repeat_(ctx, ctx.input(0), ctx.input(0).shape(), shape));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  cuda::Repeater repeat_;
};

// SumToShape, and SumToShapeOf with a second input.
class SumToOnGpu final : public cuda::DeviceKernel {
 public:
  explicit SumToOnGpu(const KernelSpec& s) : sum_(typeid(formula::SumOf), s.type(), true) {
    if (s.op.in.size() == 1) target_ = s.shape_attr("shape").shape();
  }
  std::span<cuda::GpuFunction> functions() override { return sum_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Shape target = ctx.inputs() == 2 ? ctx.input(1).shape() : target_;
    Tensor y = x;
    if (x.shape() != target) {
      TROUPE_TRY(auto axes, summed(x.shape(), target));
      TROUPE_TRY(y, sum_(ctx, x, axes, target));
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  cuda::Reducer sum_;
  Shape target_;
};

std::vector<Output> broadcast_to_grad(GradContext& c) {
  return {c.g.add("SumToShapeOf", {c.dy[0], c.x[0]}), Output()};
}

}  // namespace

TROUPE_OPS(broadcast) {
  r.add({.name = "BroadcastTo",
         .in = {"x", "shape: i64"},
         .out = {"y"},
         .types = kAllTypes,
         .shape = broadcast_to_shape,
         .grad = broadcast_to_grad,
         .host = {"shape"},
         .doc = "x broadcast to `shape`."})
      .cpu(kernel<broadcast_to>)
      .cuda(make_kernel<BroadcastToOnGpu>, kPlainTypes);
  r.add({.name = "SumToShape",
         .in = {"x"},
         .out = {"y"},
         .types = kFloatsAndComplex,
         .attrs = {"shape: shape"},
         .shape = sum_to_shape_shape,
         .grad = sum_to_shape_grad,
         .doc = "x summed over the dimensions that broadcasting `shape` to the shape of x would "
                "repeat: the gradient of a broadcast."})
      .cpu(make_kernel<SumToShape>)
      .cuda(make_kernel<SumToOnGpu>);
  r.add({.name = "SumToShapeOf",
         .in = {"x", "like"},
         .out = {"y"},
         .types = kFloatsAndComplex,
         .shape = sum_to_shape_of_shape,
         .grad = sum_to_shape_of_grad,
         .doc = "SumToShape with the shape of `like`; its values are not read."})
      .cpu(kernel<sum_to_like>)
      .cuda(make_kernel<SumToOnGpu>);
}
