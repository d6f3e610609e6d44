// ApplyGradientDescent: var -= lr * grad.
#include "ops/kernels/state/update.hpp"

using namespace troupe;

namespace {

template <class T>
Status descend(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  const T lr = scalar_operand<T>(c, 1);
  auto step = [=](T& x, T gradient) { x -= lr * gradient; };
  update_elements(c, c.input(2).data<T>(), step, var);
  c.set_output(0, var.take());
  return ok_status();
}

Status descend_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? descend<float>(c) : descend<double>(c);
}

}  // namespace

TROUPE_OPS(sgd) {
  add_update<kernel<descend_any>>(
      r, {.name = "ApplyGradientDescent",
          .in = {"var: resource", "lr", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "var -= lr * grad, with the mean of the replicas' gradients."});
}
