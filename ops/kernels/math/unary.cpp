// Functions of one element: signs, powers and roots, rounding, tests, exponentials, trigonometry.
#include "ops/formulas/unary.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/float_function.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/one_shape.hpp"
#include "ops/kernels/support/packets.hpp"

using namespace troupe;

namespace {

struct Log1p {
  template <class T>
  static constexpr bool packets = true;
  auto operator()(auto x) const { return log1p_value(x); }
};
struct Expm1 : FloatPackets {
  auto operator()(auto x) const { return expm1_value(x); }
  double operator()(double x) const { return std::expm1(x); }
};
struct Erf : FloatPackets {
  auto operator()(auto x) const { return erf_value(x); }
  double operator()(double x) const { return std::erf(x); }
};
struct ErfGrad : FloatPackets {
  template <class V>
  V operator()(V dy, V x) const {
    return erf_slope(dy, x);
  }
  double operator()(double dy, double x) const { return formula::ErfGrad{}(dy, x); }
};
struct Sin : FloatPackets {
  auto operator()(auto x) const { return sine_value<0>(x); }
  double operator()(double x) const { return std::sin(x); }
};
struct Cos : FloatPackets {
  auto operator()(auto x) const { return sine_value<1>(x); }
  double operator()(double x) const { return std::cos(x); }
};

// 2 x dy without a constant of the right type.
std::vector<Output> square_grad(GradContext& c) {
  return {multiply(c.dy[0], twice(conjugate(c.x[0])))};
}
// At 0 it is chosen, not multiplied by 0: behind sqrt(abs(x)) dy is infinite there.
std::vector<Output> abs_grad(GradContext& c) {
  const Output x = c.x[0], dy = c.dy[0];
  return {where(c.g.add("Equal", {x, scalar_like(x, 0)}), scalar_like(dy, 0),
                multiply(dy, c.g.add("Sign", {x})))};
}
std::vector<Output> neg_grad(GradContext& c) { return {c.g.add("Neg", {c.dy[0]})}; }
std::vector<Output> log1p_grad(GradContext& c) {
  return {c.g.add("Div", {c.dy[0], c.g.add("Add", {c.x[0], scalar_like(c.x[0], 1)})})};
}
std::vector<Output> expm1_grad(GradContext& c) {
  return {c.g.add("Mul", {c.dy[0], c.g.add("Exp", {c.x[0]})})};  // y + 1 is 0 for a large -x
}
std::vector<Output> sin_grad(GradContext& c) {
  return {multiply(c.dy[0], conjugate(c.g.add("Cos", {c.x[0]})))};
}
std::vector<Output> cos_grad(GradContext& c) {
  return {negate(multiply(c.dy[0], conjugate(c.g.add("Sin", {c.x[0]}))))};
}
std::vector<Output> sqrt_grad(GradContext& c) {
  return {c.g.add("SqrtGrad", {c.dy[0], conjugate(c.y[0])})};
}
std::vector<Output> rsqrt_grad(GradContext& c) { return {c.g.add("RsqrtGrad", {c.dy[0], c.y[0]})}; }
std::vector<Output> reciprocal_grad(GradContext& c) {
  return {c.g.add("ReciprocalGrad", {c.dy[0], conjugate(c.y[0])})};
}
// Second order: of z = f(dy, y), with the gradient d of z, for dy and for y.
// z = -dy y^2
std::vector<Output> reciprocal_grad_grad(GradContext& c) {
  const Output d = c.dy[0], dy = conjugate(c.x[0]), y = conjugate(c.x[1]);
  return {c.g.add("ReciprocalGrad", {d, y}), negate(multiply(multiply(d, dy), twice(y)))};
}
// z = dy / (2 y)
std::vector<Output> sqrt_grad_grad(GradContext& c) {
  const Output d = c.dy[0], z = conjugate(c.y[0]), y = conjugate(c.x[1]);
  return {c.g.add("SqrtGrad", {d, y}), negate(divide(multiply(d, z), y))};
}
// z = -dy y^3 / 2
std::vector<Output> rsqrt_grad_grad(GradContext& c) {
  const Output d = c.dy[0], dy = c.x[0], y = c.x[1];
  Output squared = c.g.add("ReciprocalGrad", {multiply(d, dy), y});
  return {c.g.add("RsqrtGrad", {d, y}), multiply(squared, scalar_like(y, 1.5))};
}
// z = dy 2 / sqrt(pi) e^(-x^2)
std::vector<Output> erf_grad_grad(GradContext& c) {
  const Output d = c.dy[0], z = c.y[0], x = c.x[1];
  return {c.g.add("ErfGrad", {d, x}), negate(multiply(multiply(d, z), twice(x)))};
}
std::vector<Output> erf_grad(GradContext& c) { return {c.g.add("ErfGrad", {c.dy[0], c.x[0]})}; }

OpDef unary(std::string name, std::string types, GradFn grad, std::string doc) {
  return {.name = std::move(name),
          .in = {"x"},
          .out = {"y"},
          .types = std::move(types),
          .shape = same_shape,
          .grad = grad,
          .no_gradient = grad == nullptr ? "constant between its steps" : "",
          .elementwise = true,
          .doc = std::move(doc)};
}

}  // namespace

TROUPE_OPS(signs_and_roots) {
  r.add(unary("Abs", kSignedNumbers, abs_grad, "y = |x|. The gradient at 0 is 0."))
      .cpu(elementwise<formula::Abs, SignedNumbers>)
      .cuda(cuda::elementwise<formula::Abs>);
  r.add(unary("Neg", kSignedAndComplex, neg_grad, "y = -x. Integers wrap around."))
      .cpu(or_complex<elementwise<formula::Neg, SignedNumbers>>)
      .cuda(cuda::elementwise<formula::Neg>);
  r.add(unary("Square", kSignedAndComplex, square_grad, "y = x * x. Integers wrap around."))
      .cpu(or_complex<elementwise<formula::Square, SignedNumbers>>)
      .cuda(cuda::elementwise<formula::Square>);
  r.add(unary("Sign", kSignedNumbers, nullptr,
              "y = 1 if x is positive, 0 if zero, -1 if negative; NaN stays NaN."))
      .cpu(elementwise<formula::Sign, SignedNumbers>)
      .cuda(cuda::elementwise<formula::Sign>);
  r.add(unary("Reciprocal", kFloatsAndComplex, reciprocal_grad, "y = 1 / x."))
      .cpu(or_complex<elementwise<formula::Reciprocal>>)
      .cuda(cuda::elementwise<formula::Reciprocal>);
  r.add(with_complex(float_gradient("ReciprocalGrad", "y", reciprocal_grad_grad,
                                    "dx = -dy * y^2: the gradient of Reciprocal.")))
      .cpu(of_one_shape<or_complex<elementwise<formula::ReciprocalGrad>>>)
      .cuda(cuda::elementwise<formula::ReciprocalGrad, cuda::Shapes::equal>);
  r.add(unary("Sqrt", kFloatsAndComplex, sqrt_grad,
              "y = sqrt(x); NaN below 0, but of a complex x the root whose real part is not "
              "negative. The gradient at 0 is inf."))
      .cpu(or_complex<elementwise<formula::Sqrt>>)
      .cuda(cuda::elementwise<formula::Sqrt>);
  r.add(with_complex(float_gradient("SqrtGrad", "y", sqrt_grad_grad,
                                    "dx = dy / (2 y): the gradient of Sqrt.")))
      .cpu(of_one_shape<or_complex<elementwise<formula::SqrtGrad>>>)
      .cuda(cuda::elementwise<formula::SqrtGrad, cuda::Shapes::equal>);
  r.add(unary("Rsqrt", kFloats, rsqrt_grad, "y = 1 / sqrt(x)."))
      .cpu(elementwise<formula::Rsqrt>)
      .cuda(cuda::elementwise<formula::Rsqrt>);
  r.add(float_gradient("RsqrtGrad", "y", rsqrt_grad_grad,
                       "dx = -dy * y^3 / 2: the gradient of Rsqrt."))
      .cpu(of_one_shape<elementwise<formula::RsqrtGrad>>)
      .cuda(cuda::elementwise<formula::RsqrtGrad, cuda::Shapes::equal>);
}

TROUPE_OPS(rounding_and_tests) {
  r.add(unary("Floor", kFloats, nullptr, "The largest integer not above x."))
      .cpu(elementwise<formula::Floor>)
      .cuda(cuda::elementwise<formula::Floor>);
  r.add(unary("Ceil", kFloats, nullptr, "The smallest integer not below x."))
      .cpu(elementwise<formula::Ceil>)
      .cuda(cuda::elementwise<formula::Ceil>);
  r.add(unary("Round", kFloats, nullptr, "The nearest integer; halves round to even."))
      .cpu(elementwise<formula::Round>)
      .cuda(cuda::elementwise<formula::Round>);
  auto test = [](std::string name, std::string doc) {
    OpDef def = unary(std::move(name), kFloats, nullptr, std::move(doc));
    def.out = {"y: bool"};
    def.no_gradient = "a truth value";
    return def;
  };
  r.add(test("IsNan", "True where x is not a number."))
      .cpu(elementwise<formula::IsNan>)
      .cuda(cuda::elementwise<formula::IsNan>);
  r.add(test("IsInf", "True where x is infinite, of either sign."))
      .cpu(elementwise<formula::IsInf>)
      .cuda(cuda::elementwise<formula::IsInf>);
  r.add(test("IsFinite", "True where x is neither infinite nor NaN."))
      .cpu(elementwise<formula::IsFinite>)
      .cuda(cuda::elementwise<formula::IsFinite>);
  OpDef logical_not = unary("LogicalNot", "bool", nullptr, "y = not x.");
  logical_not.no_gradient = "a truth value";
  r.add(logical_not)
      .cpu(elementwise<formula::LogicalNot, Types<bool>>)
      .cuda(cuda::elementwise<formula::LogicalNot>);
}

TROUPE_OPS(transcendental) {
  r.add(unary("Log1p", kFloats, log1p_grad, "y = log(1 + x), accurate for small x."))
      .cpu(elementwise<Log1p>)
      .cuda(cuda::elementwise<formula::Log1p>);
  r.add(unary("Expm1", kFloats, expm1_grad, "y = exp(x) - 1, accurate for small x."))
      .cpu(elementwise<Expm1>)
      .cuda(cuda::elementwise<formula::Expm1>);
  r.add(unary("Sin", kFloatsAndComplex, sin_grad, "y = sin(x), x in radians."))
      .cpu(or_complex<elementwise<Sin>>)
      .cuda(cuda::elementwise<formula::Sin>);
  r.add(unary("Cos", kFloatsAndComplex, cos_grad, "y = cos(x), x in radians."))
      .cpu(or_complex<elementwise<Cos>>)
      .cuda(cuda::elementwise<formula::Cos>);
  r.add(unary("Erf", kFloats, erf_grad, "The error function."))
      .cpu(elementwise<Erf>)
      .cuda(cuda::elementwise<formula::Erf>);
  r.add(float_gradient("ErfGrad", "x", erf_grad_grad,
                       "dx = dy * 2 / sqrt(pi) * exp(-x^2): the gradient of Erf."))
      .cpu(of_one_shape<elementwise<ErfGrad>>)
      .cuda(cuda::elementwise<formula::ErfGrad, cuda::Shapes::equal>);
}
