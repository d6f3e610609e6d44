// Huber: the loss of a difference that is squared near 0 and straight beyond `delta`.
#include "ops/formulas/huber.hpp"

#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/grad.hpp"

using namespace troupe;

namespace {

Status huber_shape(InferenceContext& c) {
  TROUPE_TRY(auto difference, broadcast(c.shape(0), c.shape(1)));
  TROUPE_TRY(auto all, broadcast(difference, c.shape(2)));
  c.set(0, std::move(all));
  return ok_status();
}

// The slope is the difference, limited to [-delta, delta]; that for delta is how far the difference
// is beyond it.
std::vector<Output> huber_grad(GradContext& c) {
  const Output a = c.x[0], b = c.x[1], delta = c.x[2];
  const Output difference = minus(a, b);
  const Output slope = c.g.add("Minimum", {c.g.add("Maximum", {difference, negate(delta)}), delta});
  const Output beyond = c.g.add("Relu", {minus(c.g.add("Abs", {difference}), delta)});
  const Output y = c.y[0];
  const Output da = multiply(c.dy[0], slope);
  return {sum_to(a, y, da), sum_to(b, y, negate(da)), sum_to(delta, y, multiply(c.dy[0], beyond))};
}

}  // namespace

TROUPE_OPS(huber) {
  r.add({.name = "Huber",
         .in = {"a", "b", "delta"},
         .out = {"y"},
         .types = kReals,
         .shape = huber_shape,
         .grad = huber_grad,
         .elementwise = true,
         .doc = "Of the difference d = a - b: y = d^2 / 2 where |d| <= delta, else delta (|d| - "
                "delta / 2). The inputs broadcast."})
      .cpu(elementwise<formula::Huber, Reals>)
      .cuda(cuda::elementwise<formula::Huber>);
}
