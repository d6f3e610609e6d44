// Where tensors come from: constants, fills, placeholders.
#include <fmt/core.h>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/formulas/fills.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moves.hpp"

using namespace troupe;

namespace {

Status const_shape(InferenceContext& c) {
  const Tensor& value = c.tensor_attr("value");
  if (!value.defined() || value.dtype() != c.type_attr("T"))
    return invalid_argument(fmt::format("value is {}, T is {}", dtype_name(value.dtype()),
                                        dtype_name(c.type_attr("T"))));
  c.set(0, value.shape());
  return ok_status();
}

struct Const final : Kernel {
  explicit Const(Tensor v) : value(std::move(v)) {}
  Status compute(KernelContext& ctx) override {
    ctx.set_output(0, value);
    return ok_status();
  }
  Tensor value;
};
Expected<std::unique_ptr<Kernel>> make_const(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Const(spec.tensor_attr("value")));
}

Status fill_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(1, 0));
  return set_shape_from(c, 0);
}
Status fill(KernelContext& ctx) {
  TROUPE_TRY(auto dims, host_ints(ctx.input(0), "dims"));
  TROUPE_TRY(Shape shape, checked_shape(dims));
  const Tensor& value = ctx.input(1);
  if (value.elements() != 1)
    return invalid_argument("value must be a scalar, not " + value.shape().text());
  TROUPE_TRY(Tensor y, ctx.allocate(value.dtype(), shape));
  fill_tensor(ctx, value.raw(), y);
  ctx.set_output(0, std::move(y));
  return ok_status();
}
std::vector<Output> fill_grad(GradContext& c) { return {Output(), c.g.add("Sum", {c.dy[0]})}; }

class FillOnGpu final : public cuda::DeviceKernel {
 public:
  explicit FillOnGpu(const KernelSpec& s) : repeat_(s.type()) {}
  std::span<cuda::GpuFunction> functions() override { return repeat_.functions(); }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(auto dims, host_ints(ctx.input(0), "dims"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    const Tensor& value = ctx.input(1);
    if (value.elements() != 1)
      return invalid_argument("value must be a scalar, not " + value.shape().text());
    TROUPE_TRY(Tensor y, repeat_(ctx, value, Shape{}, shape));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  cuda::Repeater repeat_;
};

Status placeholder_shape(InferenceContext& c) {
  c.set(0, c.shape_attr("shape"));
  return ok_status();
}

}  // namespace

TROUPE_OPS(constant) {
  r.add({.name = "Const",
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"value: tensor"},
         .shape = const_shape,
         .no_gradient = "no inputs",
         .cheap = true,
         .doc = "The tensor given as an attribute, of type T."})
      .cpu(make_const)
      .cuda(cuda::constant, kPlainTypes);
  r.add({.name = "Fill",
         .in = {"dims: Tdims", "value"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"Tdims: type {i32 i64} = i64"},
         .shape = fill_shape,
         .grad = fill_grad,
         .host = {"dims"},
         .doc = "A tensor of shape `dims` (a vector), filled with the scalar `value`."})
      .cpu(kernel<fill>)
      .cuda(make_kernel<FillOnGpu>, kPlainTypes);
  r.add({.name = "ZerosLike",
         .in = {"x"},
         .out = {"y"},
         .types = kPlainTypes,
         .shape = same_shape,
         .no_gradient = "the same for any x",
         .doc = "Zeros (false) with the shape and type of x."})
      .cpu(or_complex<elementwise<formula::Filled<0>, NumbersAndBool>>)
      .cuda(cuda::elementwise<formula::Filled<0>>);
  r.add({.name = "OnesLike",
         .in = {"x"},
         .out = {"y"},
         .types = kPlainTypes,
         .shape = same_shape,
         .no_gradient = "the same for any x",
         .doc = "Ones (true) with the shape and type of x."})
      .cpu(or_complex<elementwise<formula::Filled<1>, NumbersAndBool>>)
      .cuda(cuda::elementwise<formula::Filled<1>>);
  r.add({.name = "Placeholder",
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"shape: shape = ?"},
         .shape = placeholder_shape,
         .no_gradient = "no inputs",
         .role = Role::placeholder,
         .doc = "A value that each run must feed, of type T and a shape that `shape` accepts."});
}
