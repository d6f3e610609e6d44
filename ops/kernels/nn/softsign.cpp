// Softsign: y = x / (1 + |x|), elementwise.
//
// The example to copy for a new op: its formulas are in ops/formulas/softsign.hpp, for CPUs and
// GPUs. Here is how gradients flow, then the definition, from which registration, wrappers,
// documentation and checks follow. The tests' row is in tests/ops/cases/unary.cpp.
#include "ops/formulas/softsign.hpp"

#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/one_shape.hpp"

using namespace troupe;

namespace {

std::vector<Output> softsign_grad(GradContext& c) {
  return {c.g.add("SoftsignGrad", {c.dy[0], c.x[0]})};
}

// Second order. With z = dy / (1 + |x|)^2: dz/ddy = 1 / (1 + |x|)^2, dz/dx = -2 sign(x) z / (1 +
// |x|).
std::vector<Output> softsign_grad_grad(GradContext& c) {
  const Output d = c.dy[0], z = c.y[0], x = c.x[1];
  Output fall = divide(multiply(twice(z), c.g.add("Sign", {x})),
                       plus(c.g.add("Abs", {x}), scalar_like(x, 1)));
  return {c.g.add("SoftsignGrad", {d, x}), negate(multiply(d, fall))};
}

}  // namespace

TROUPE_OPS(softsign) {
  r.add({.name = "Softsign",
         .in = {"x"},
         .out = {"y"},
         .types = kFloats,
         .shape = same_shape,
         .grad = softsign_grad,
         .elementwise = true,
         .doc = "y = x / (1 + |x|). Saturates like tanh, with heavier tails."})
      .cpu(elementwise<formula::Softsign>)
      .cuda(cuda::elementwise<formula::Softsign>);
  r.add({.name = "SoftsignGrad",
         .in = {"dy", "x"},
         .out = {"dx"},
         .types = kFloats,
         .shape = one_shape,
         .grad = softsign_grad_grad,
         .elementwise = true,
         .doc = "dx = dy / (1 + |x|)^2: the gradient of Softsign."})
      .cpu(of_one_shape<elementwise<formula::SoftsignGrad>>)
      .cuda(cuda::elementwise<formula::SoftsignGrad, cuda::Shapes::equal>);
}
