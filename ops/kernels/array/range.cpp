// Range: numbers in equal steps.
#include <fmt/core.h>

#include <cmath>
#include <type_traits>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/grad.hpp"

using namespace troupe;

namespace {

// Element i of a range of floats.
template <class T>
T range_element(T start, T delta, std::int64_t i) {
  return start + T(i) * delta;
}
// How many elements are before the limit, of about n. A quotient alone would count one too many
// where it is rounded up, as for [0, 3 * .1) in steps of .1, or where elements are.
template <class T>
std::int64_t elements_before(T start, T limit, T delta, std::int64_t n) {
  std::int64_t in = 0, out = n + 2;  // elements follow each other, so halving finds the first out
  while (in < out) {
    const std::int64_t i = in + (out - in) / 2;
    const T x = range_element(start, delta, i);
    if (delta > 0 ? x < limit : x > limit)
      in = i + 1;
    else
      out = i;
  }
  return in;
}

// How many elements there are, or why there is no range.
template <class T>
Expected<std::int64_t> range_length(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  if (start.elements() != 1 || limit.elements() != 1 || delta.elements() != 1)
    return invalid_argument("start, limit and delta must be scalars");
  const T a = *start.data<T>(), b = *limit.data<T>(), d = *delta.data<T>();
  if (d == 0 || a != a || b != b || d != d) return invalid_argument("delta must not be 0 or NaN");
  if ((d > 0) != (a < b)) return std::int64_t{0};
  double n = 0;
  if constexpr (std::is_integral_v<T>) {
    using Wide = __int128;
    Wide span = Wide(b) - a, step = d;
    n = double((span + step - (step > 0 ? 1 : -1)) / step);
    if (n < 0x1p62) return std::int64_t((span + step - (step > 0 ? 1 : -1)) / step);
  } else {
    n = std::ceil((double(b) - double(a)) / double(d));
    if (n < 0x1p62) return elements_before(a, b, d, std::int64_t(n));
  }
  return invalid_argument(fmt::format("a range of {} elements", n));
}
using RangeTypes = Types<float, double, std::int32_t, std::int64_t>;

Status range_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) TROUPE_TRY(c.want_rank(i, 0));
  c.set(0, PartialShape::unknown_of_rank(1));
  if (!c.value(0) || !c.value(1) || !c.value(2)) return ok_status();
  return dispatch<Status>(RangeTypes{}, c.type_attr("T"), [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    TROUPE_TRY(std::int64_t n, range_length<T>(*c.value(0), *c.value(1), *c.value(2)));
    c.set(0, PartialShape{n});
    return ok_status();
  });
}
template <class T>
struct RangeKernel final : Kernel {
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(std::int64_t n, range_length<T>(ctx.input(0), ctx.input(1), ctx.input(2)));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, Shape{n}));
    const T start = *ctx.input(0).data<T>(), delta = *ctx.input(2).data<T>();
    T* out = y.mutable_data<T>();
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_integral_v<T>)  // T(i) need not fit
        out[i] = T(std::uint64_t(start) + std::uint64_t(i) * std::uint64_t(delta));
      else
        out[i] = range_element(start, delta, i);
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
};

template <class T>
class RangeOnGpu final : public cuda::DeviceKernel {
 public:
  RangeOnGpu() : function_{cuda::device_type("Range", {cuda::element_type(dtype_of<T>)})} {}
  std::span<cuda::GpuFunction> functions() override { return {&function_, 1}; }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(std::int64_t n, range_length<T>(ctx.input(0), ctx.input(1), ctx.input(2)));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, Shape{n}));
    const T start = *ctx.input(0).data<T>(), delta = *ctx.input(2).data<T>();
    device::RangeArgs args{};
    args.to = y.mutable_raw(), args.n = n;
    if constexpr (std::is_integral_v<T>)
      args.first = std::uint64_t(start), args.step = std::uint64_t(delta);
    else
      args.start = double(start), args.delta = double(delta);
    if (n != 0) TROUPE_TRY(cuda::launch(ctx, function_, cuda::grid_for(n), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  cuda::GpuFunction function_;
};

// y[i] = start + i delta. The limit decides about the length alone.
std::vector<Output> range_grad(GradContext& c) {
  const Output dy = c.dy[0];
  auto number = [&](std::int64_t value) { return scalar_const(c.g, DType::i64, double(value)); };
  Output size = c.g.add("Size", {dy});
  Output steps =
      c.g.add("Cast", {c.g.add("Range", {number(0), size, number(1)})}, {{"to", dy.dtype()}});
  return {c.g.add("Sum", {dy}), Output(), c.g.add("Sum", {multiply(dy, steps)})};
}

}  // namespace

TROUPE_OPS(range) {
  r.add({.name = "Range",
         .in = {"start", "limit", "delta"},
         .out = {"y"},
         .types = "f32 f64 i32 i64",
         .shape = range_shape,
         .grad = range_grad,
         .host = {"start", "limit", "delta"},
         .doc = "The vector start, start + delta, ... up to but excluding limit. The inputs are "
                "scalars; delta may be negative but not 0. No gradient flows to limit."})
      .cpu(typed_kernel<RangeKernel, RangeTypes>)
      .cuda(typed_kernel<RangeOnGpu, RangeTypes>);
}
