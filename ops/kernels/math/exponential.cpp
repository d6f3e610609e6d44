// Exp, Log, Tanh, Sigmoid and their gradients.
#include "ops/formulas/exponential.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/float_function.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/one_shape.hpp"
#include "ops/kernels/support/packets.hpp"

using namespace troupe;

namespace {

struct Exp {
  template <class T>
  static constexpr bool packets = true;
  auto operator()(auto x) const { return exp_value(x); }
};
struct Log {
  template <class T>
  static constexpr bool packets = true;
  auto operator()(auto x) const { return log_value(x); }
};
struct Tanh {
  template <class T>
  static constexpr bool packets = std::is_same_v<T, float>;
  auto operator()(auto x) const { return tanh_value(x); }
};
struct Sigmoid {
  template <class T>
  static constexpr bool packets = true;
  auto operator()(auto x) const { return sigmoid_value(x); }
};

std::vector<Output> exp_grad(GradContext& c) { return {multiply(c.dy[0], conjugate(c.y[0]))}; }
std::vector<Output> log_grad(GradContext& c) { return {divide(c.dy[0], conjugate(c.x[0]))}; }
std::vector<Output> tanh_grad(GradContext& c) {
  return {c.g.add("TanhGrad", {c.dy[0], conjugate(c.y[0])})};
}
std::vector<Output> sigmoid_grad(GradContext& c) {
  return {c.g.add("SigmoidGrad", {c.dy[0], c.y[0]})};
}

// Second order. With z = dy (1 - y^2): dz/ddy = 1 - y^2, dz/dy = -2 dy y.
std::vector<Output> tanh_grad_grad(GradContext& c) {
  const Output dy = conjugate(c.x[0]), y = conjugate(c.x[1]);
  return {c.g.add("TanhGrad", {c.dy[0], y}), negate(multiply(c.dy[0], multiply(dy, twice(y))))};
}
// With z = dy y (1 - y): dz/ddy = y (1 - y), dz/dy = dy (1 - 2 y).
std::vector<Output> sigmoid_grad_grad(GradContext& c) {
  Output twice = c.g.add("Add", {c.x[1], c.x[1]});
  Output slope = c.g.add("Sub", {scalar_like(c.x[1], 1), twice});
  return {c.g.add("SigmoidGrad", {c.dy[0], c.x[1]}),
          c.g.add("Mul", {c.dy[0], c.g.add("Mul", {c.x[0], slope})})};
}

}  // namespace

TROUPE_OPS(exponential) {
  r.add(with_complex(float_function("Exp", exp_grad, "y = e^x.")))
      .cpu(or_complex<elementwise<Exp>>)
      .cuda(cuda::elementwise<formula::Exp>);
  r.add(with_complex(
            float_function("Log", log_grad,
                           "The natural logarithm of x; -inf at 0, NaN below. Of a complex x its "
                           "principal value, whose imaginary part is the angle of x.")))
      .cpu(or_complex<elementwise<Log>>)
      .cuda(cuda::elementwise<formula::Log>);
  r.add(with_complex(float_function("Tanh", tanh_grad, "y = tanh(x).")))
      .cpu(or_complex<elementwise<Tanh>>)
      .cuda(cuda::elementwise<formula::Tanh>);
  r.add(with_complex(float_gradient("TanhGrad", "y", tanh_grad_grad,
                                    "dx = dy * (1 - y^2): the gradient of Tanh.")))
      .cpu(of_one_shape<or_complex<elementwise<formula::TanhGrad>>>)
      .cuda(cuda::elementwise<formula::TanhGrad, cuda::Shapes::equal>);
  r.add(float_function("Sigmoid", sigmoid_grad, "y = 1 / (1 + exp(-x))."))
      .cpu(elementwise<Sigmoid>)
      .cuda(cuda::elementwise<formula::Sigmoid>);
  r.add(float_gradient("SigmoidGrad", "y", sigmoid_grad_grad,
                       "dx = dy * y * (1 - y): the gradient of Sigmoid."))
      .cpu(of_one_shape<elementwise<formula::SigmoidGrad>>)
      .cuda(cuda::elementwise<formula::SigmoidGrad, cuda::Shapes::equal>);
}
