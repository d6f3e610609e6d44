// Gelu, exact and by tanh, and the gradients.
#include "ops/formulas/gelu.hpp"

#include <vector>

#include "graph/gradient_through.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/float_function.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/one_shape.hpp"
#include "ops/kernels/support/packets.hpp"

using namespace troupe;

namespace {

// formula::FloatNormal of packets.
template <class V>
struct Normal {
  V below, bell;
};
template <class V>
TROUPE_INLINE Normal<V> normal_at(V x) {
  using N = formula::NormalTail;
  const V one = splat<V>(1), most = splat<V>(N::kMost), size = magnitude(x);
  const V within = choose(size > most, most, size);
  const V square = within * within, lost = multiply_add(within, within, -square);
  const V rounded = exp_value(square * -0.5f), bell = multiply_add(rounded, lost * -0.5f, rounded);
  const V s = one / multiply_add(within, splat<V>(N::kOfSize), one);
  const V tail = bell * (s * paired_polynomial(s, s * s, N::kTail));
  return {choose(x < V{}, tail, one - tail), bell};
}

struct Gelu : FloatPackets {
  auto operator()(auto x) const { return x * normal_at(x).below; }
  double operator()(double x) const { return formula::Gelu{}(x); }
};
struct GeluGrad : FloatPackets {
  template <class V>
  V operator()(V dy, V x) const {
    const Normal<V> normal = normal_at(x);
    return dy * multiply_add(x, normal.bell * 0.398942280f, normal.below);
  }
  double operator()(double dy, double x) const { return formula::GeluGrad{}(dy, x); }
};

struct GeluTanh : FloatPackets {
  template <class V>
  V operator()(V x) const {
    using F = formula::GeluTanh;
    const V slope = multiply_add(x * x, splat<V>(float(F::kOfCube)), splat<V>(float(F::kOfX)));
    return x * sigmoid_value(x * slope);
  }
  double operator()(double x) const { return formula::GeluTanh{}(x); }
};
struct GeluTanhGrad : FloatPackets {
  template <class V>
  V operator()(V dy, V x) const {
    using F = formula::GeluTanh;
    const V within = clamped(x, -50.0f, 50.0f), square = within * within, one = splat<V>(1);
    const V twice =
        within * multiply_add(square, splat<V>(float(F::kOfCube)), splat<V>(float(F::kOfX)));
    const V e = exp_value(-magnitude(twice)), part = one / (one + e);
    const V slope = multiply_add(square, splat<V>(float(3 * F::kOfCube)), splat<V>(float(F::kOfX)));
    return dy * multiply_add(within, e * part * part * slope, choose(twice < V{}, e * part, part));
  }
  double operator()(double dy, double x) const { return formula::GeluTanhGrad{}(dy, x); }
};

Output times(Output x, double factor) { return multiply(x, scalar_like(x, factor)); }

std::vector<Output> gelu_grad(GradContext& c) { return {c.g.add("GeluGrad", {c.dy[0], c.x[0]})}; }
std::vector<Output> gelu_tanh_grad(GradContext& c) {
  return {c.g.add("GeluTanhGrad", {c.dy[0], c.x[0]})};
}

// x, up to where slopes no longer change: of more, squares would overflow.
Output clipped(Output x) {
  GraphBuilder& g = x.graph();
  return g.add("Minimum", {g.add("Maximum", {x, scalar_like(x, -50)}), scalar_like(x, 50)});
}

// With z = dy (Phi(x) + x phi(x)): dz/dx = dy phi(x) (2 - x^2).
std::vector<Output> gelu_grad_grad(GradContext& c) {
  const Output d = c.dy[0], dy = c.x[0], x = c.x[1], square = c.g.add("Square", {clipped(x)});
  const Output density = times(c.g.add("Exp", {times(square, -0.5)}), 0.39894228040143268);
  return {c.g.add("GeluGrad", {d, x}),
          multiply(multiply(d, dy), multiply(density, minus(scalar_like(x, 2), square)))};
}
// As several nodes.
std::vector<Output> gelu_tanh_grad_grad(GradContext& c) {
  return gradient_through(c, [&](const std::vector<Output>& in) -> std::vector<Output> {
    using F = formula::GeluTanh;
    const Output dy = in[0], x = clipped(in[1]), square = c.g.add("Square", {x});
    const auto slope = [&](double of_square) {
      return plus(times(square, of_square * F::kOfCube), scalar_like(x, F::kOfX));
    };
    const Output s = c.g.add("Sigmoid", {multiply(x, slope(1))});
    const Output falls = multiply(s, minus(scalar_like(x, 1), s));
    return {multiply(dy, plus(s, multiply(multiply(x, falls), slope(3))))};
  });
}

}  // namespace

TROUPE_OPS(gelu) {
  r.add(float_function(
            "Gelu", gelu_grad,
            "y = x Phi(x), where Phi(x) is the part of normally distributed numbers below x "
            "(Hendrycks and Gimpel, 2016)."))
      .cpu(elementwise<Gelu>)
      .cuda(cuda::elementwise<formula::Gelu>);
  r.add(float_gradient("GeluGrad", "x", gelu_grad_grad,
                       "dx = dy * (Phi(x) + x * phi(x)): the gradient of Gelu, where phi is the "
                       "density of normally distributed numbers."))
      .cpu(of_one_shape<elementwise<GeluGrad>>)
      .cuda(cuda::elementwise<formula::GeluGrad, cuda::Shapes::equal>);
  r.add(float_function("GeluTanh", gelu_tanh_grad,
                       "y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))): nearly Gelu "
                       "(Hendrycks and Gimpel, 2016)."))
      .cpu(elementwise<GeluTanh>)
      .cuda(cuda::elementwise<formula::GeluTanh>);
  r.add(float_gradient("GeluTanhGrad", "x", gelu_tanh_grad_grad,
                       "dx = dy times the slope of GeluTanh at x."))
      .cpu(of_one_shape<elementwise<GeluTanhGrad>>)
      .cuda(cuda::elementwise<formula::GeluTanhGrad, cuda::Shapes::equal>);
}
