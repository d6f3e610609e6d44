// ApplyProximalGradientDescent: gradient descent with forward-backward splitting (Duchi and Singer,
// 2009).
#include "ops/kernels/state/proximal.hpp"
#include "ops/kernels/state/update.hpp"

using namespace troupe;

namespace {

// Inputs: var, lr, l1, l2, grad.
template <class T>
Status descend(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  const T lr = scalar_operand<T>(c, 1), l1 = scalar_operand<T>(c, 2), l2 = scalar_operand<T>(c, 3);
  auto step = [=](T& x, T g) { x = proximal(x - lr * g, lr, l1, l2); };
  update_elements(c, c.input(4).data<T>(), step, var);
  c.set_output(0, var.take());
  return ok_status();
}

Status descend_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? descend<float>(c) : descend<double>(c);
}

}  // namespace

TROUPE_OPS(proximal_sgd) {
  add_update<kernel<descend_any>>(
      r, {.name = "ApplyProximalGradientDescent",
          .in = {"var: resource", "lr", "l1", "l2", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "p = var - lr * grad; var = sign(p) * max(|p| - lr * l1, 0) / (1 + lr * l2)."});
}
