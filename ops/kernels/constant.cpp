// Where tensors come from: constants, fills, ranges, placeholders.
#include <fmt/core.h>

#include <cmath>

#include "troupe/ops/kernels/args.hpp"
#include "troupe/ops/kernels/elementwise.hpp"
#include "troupe/ops/kernels/grad.hpp"
#include "troupe/ops/kernels/moves.hpp"

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

template <int Value>
struct Same {
  static constexpr bool wraps = true;
  template <class T>
  T operator()(T) const {
    return T(Value);
  }
};

// ceil((limit - start) / delta), or why there is none.
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
    if (n < 0x1p62) return std::int64_t(n);
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
        out[i] = start + T(i) * delta;
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
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
         .doc = "The tensor given as attribute, of type T."})
      .cpu(make_const);
  r.add({.name = "Fill",
         .in = {"dims: Tdims", "value"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"Tdims: type {i32 i64} = i64"},
         .shape = fill_shape,
         .grad = fill_grad,
         .host = {"dims"},
         .doc = "A tensor of shape `dims` (a vector), every element of it the scalar `value`."})
      .cpu(kernel<fill>);
  r.add({.name = "ZerosLike",
         .in = {"x"},
         .out = {"y"},
         .types = kNumbersAndBool,
         .shape = same_shape,
         .no_gradient = "the same for any x",
         .doc = "Zeros (false) of the shape and type of x."})
      .cpu(elementwise<Same<0>, NumbersAndBool>);
  r.add({.name = "OnesLike",
         .in = {"x"},
         .out = {"y"},
         .types = kNumbersAndBool,
         .shape = same_shape,
         .no_gradient = "the same for any x",
         .doc = "Ones (true) of the shape and type of x."})
      .cpu(elementwise<Same<1>, NumbersAndBool>);
  r.add({.name = "Range",
         .in = {"start", "limit", "delta"},
         .out = {"y"},
         .types = "f32 f64 i32 i64",
         .shape = range_shape,
         .grad = range_grad,
         .host = {"start", "limit", "delta"},
         .doc = "The vector start, start + delta, ... up to but without limit. Scalars; delta may "
                "be negative but not 0. No gradient flows to limit."})
      .cpu(typed_kernel<RangeKernel, RangeTypes>);
  r.add({.name = "Placeholder",
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"shape: shape = ?"},
         .shape = placeholder_shape,
         .no_gradient = "no inputs",
         .role = Role::placeholder,
         .doc = "A value that each run must feed, of type T and of a shape that `shape` accepts."});
}
