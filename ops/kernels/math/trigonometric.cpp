// Trigonometric and hyperbolic functions and their inverses. Sin and Cos are in unary.cpp, Tanh in
// exponential.cpp.
#include "ops/formulas/trigonometric.hpp"

#include <cmath>

#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/angle_math.hpp"
#include "ops/kernels/support/float_function.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/packets.hpp"

using namespace troupe;

namespace {

// As formula::Tan and the others, by packets for float.
struct Tan : FloatPackets {
  auto operator()(auto x) const { return tan_value(x); }
  double operator()(double x) const { return std::tan(x); }
};
struct Asin : FloatPackets {
  auto operator()(auto x) const { return asin_value(x); }
  double operator()(double x) const { return std::asin(x); }
};
struct Acos : FloatPackets {
  auto operator()(auto x) const { return acos_value(x); }
  double operator()(double x) const { return std::acos(x); }
};
struct Atan : FloatPackets {
  auto operator()(auto x) const { return atan_value(x); }
  double operator()(double x) const { return std::atan(x); }
};
struct Sinh : FloatPackets {
  auto operator()(auto x) const { return sinh_value(x); }
  double operator()(double x) const { return std::sinh(x); }
};
struct Cosh : FloatPackets {
  auto operator()(auto x) const { return cosh_value(x); }
  double operator()(double x) const { return std::cosh(x); }
};
struct Asinh : FloatPackets {
  auto operator()(auto x) const { return asinh_value(x); }
  double operator()(double x) const { return std::asinh(x); }
};
struct Acosh : FloatPackets {
  auto operator()(auto x) const { return acosh_value(x); }
  double operator()(double x) const { return std::acosh(x); }
};
struct Atanh : FloatPackets {
  auto operator()(auto x) const { return atanh_value(x); }
  double operator()(double x) const { return std::atanh(x); }
};
struct Atan2 : FloatPackets {
  auto operator()(auto y, auto x) const { return atan2_value(y, x); }
  double operator()(double y, double x) const { return std::atan2(y, x); }
};

Output one_like(Output x) { return scalar_like(x, 1); }
Output squared(Output x) { return x.graph().add("Square", {x}); }
// (1 - x) (1 + x), which keeps its digits near 1.
Output one_minus_square(Output x) { return multiply(minus(one_like(x), x), plus(one_like(x), x)); }
Output rsqrt_of(Output x) { return x.graph().add("Rsqrt", {x}); }

std::vector<Output> tan_grad(GradContext& c) {
  return {multiply(c.dy[0], conjugate(plus(squared(c.y[0]), one_like(c.y[0]))))};
}
std::vector<Output> asin_grad(GradContext& c) {
  return {multiply(c.dy[0], rsqrt_of(one_minus_square(c.x[0])))};
}
std::vector<Output> acos_grad(GradContext& c) {
  return {negate(multiply(c.dy[0], rsqrt_of(one_minus_square(c.x[0]))))};
}
// f(dy, x), in f32 of 16-bit floats: their squares overflow where slopes are no 0 yet.
template <class F>
std::vector<Output> in_wide(const GradContext& c, F f) {
  return {of_dtype(f(wide(c.dy[0]), wide(c.x[0])), c.x[0].dtype())};
}
std::vector<Output> atan_grad(GradContext& c) {
  return in_wide(c, [](Output dy, Output x) { return divide(dy, plus(squared(x), one_like(x))); });
}
std::vector<Output> sinh_grad(GradContext& c) {
  return {multiply(c.dy[0], conjugate(c.g.add("Cosh", {c.x[0]})))};
}
std::vector<Output> cosh_grad(GradContext& c) {
  return {multiply(c.dy[0], conjugate(c.g.add("Sinh", {c.x[0]})))};
}
std::vector<Output> asinh_grad(GradContext& c) {
  return in_wide(
      c, [](Output dy, Output x) { return multiply(dy, rsqrt_of(plus(squared(x), one_like(x)))); });
}
std::vector<Output> acosh_grad(GradContext& c) {
  return in_wide(c, [](Output dy, Output x) {
    return multiply(dy, rsqrt_of(multiply(minus(x, one_like(x)), plus(x, one_like(x)))));
  });
}
std::vector<Output> atanh_grad(GradContext& c) {
  return {divide(c.dy[0], one_minus_square(c.x[0]))};
}
// x / (x^2 + y^2) and -y / (x^2 + y^2), of the point on a larger or smaller circle where squares
// neither overflow nor underflow; 0 at the origin and at infinity, where no angle changes.
std::vector<Output> atan2_grad(GradContext& c) {
  GraphBuilder& g = c.g;
  const Output y = c.x[0], x = c.x[1];
  const Output size =
      g.add("StopGradient", {g.add("Maximum", {g.add("Abs", {y}), g.add("Abs", {x})})});
  const Output zero = scalar_like(size, 0), none = g.add("Equal", {size, zero});
  const Output nowhere = g.add("LogicalOr", {none, g.add("IsInf", {size})});
  const Output scale = where(nowhere, one_like(size), size);
  const Output from_y = divide(y, scale), from_x = divide(x, scale);
  const Output squares = where(none, one_like(size), plus(squared(from_y), squared(from_x)));
  const auto slope = [&](Output side) {
    return where(nowhere, g.add("ZerosLike", {size}),
                 multiply(c.dy[0], divide(divide(side, squares), scale)));
  };
  return {unbroadcast(slope(from_x), y, x), unbroadcast(slope(negate(from_y)), x, y)};
}

}  // namespace

TROUPE_OPS(trigonometric) {
  r.add(with_complex(float_function("Tan", tan_grad, "y = tan(x), x in radians.")))
      .cpu(or_complex<elementwise<Tan>>)
      .cuda(cuda::elementwise<formula::Tan>);
  r.add(float_function(
            "Asin", asin_grad,
            "The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]. The gradient at 1 "
            "and -1 is inf."))
      .cpu(elementwise<Asin>)
      .cuda(cuda::elementwise<formula::Asin>);
  r.add(float_function(
            "Acos", acos_grad,
            "The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]. The gradient at 1 and -1 "
            "is -inf."))
      .cpu(elementwise<Acos>)
      .cuda(cuda::elementwise<formula::Acos>);
  r.add(float_function("Atan", atan_grad, "The angle in [-pi/2, pi/2] whose tangent is x."))
      .cpu(elementwise<Atan>)
      .cuda(cuda::elementwise<formula::Atan>);
  r.add({.name = "Atan2",
         .in = {"y", "x"},
         .out = {"angle"},
         .types = kFloats,
         .shape = broadcast_shape,
         .grad = atan2_grad,
         .elementwise = true,
         .doc = "The angle in [-pi, pi] of the point (x, y), with the signs of C's atan2. The "
                "gradient at (0, 0) and at infinities is 0. The inputs broadcast."})
      .cpu(elementwise<Atan2>)
      .cuda(cuda::elementwise<formula::Atan2>);
}

TROUPE_OPS(hyperbolic) {
  r.add(with_complex(float_function("Sinh", sinh_grad, "y = (e^x - e^-x) / 2.")))
      .cpu(or_complex<elementwise<Sinh>>)
      .cuda(cuda::elementwise<formula::Sinh>);
  r.add(with_complex(float_function("Cosh", cosh_grad, "y = (e^x + e^-x) / 2.")))
      .cpu(or_complex<elementwise<Cosh>>)
      .cuda(cuda::elementwise<formula::Cosh>);
  r.add(float_function("Asinh", asinh_grad, "The inverse of Sinh."))
      .cpu(elementwise<Asinh>)
      .cuda(cuda::elementwise<formula::Asinh>);
  r.add(float_function("Acosh", acosh_grad,
                       "The nonnegative inverse of Cosh; NaN below 1. The gradient at 1 is inf."))
      .cpu(elementwise<Acosh>)
      .cuda(cuda::elementwise<formula::Acosh>);
  r.add(float_function(
            "Atanh", atanh_grad,
            "The inverse of Tanh; inf at 1, -inf at -1, NaN outside [-1, 1]. The gradient at 1 and "
            "-1 is inf."))
      .cpu(elementwise<Atanh>)
      .cuda(cuda::elementwise<formula::Atanh>);
}
