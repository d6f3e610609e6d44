// ApplyGradientDescent: var -= lr * grad.
#include "ops/kernels/update.hpp"

using namespace troupe;

namespace {

template <class T>
Status descend(KernelContext& c) {
  TROUPE_TRY(Tensor var, new_value<T>(c, 0));
  const T* old = c.input(0).data<T>();
  const T lr = scalar_operand<T>(c, 1);
  const T* grad = c.input(2).data<T>();
  T* out = var.mutable_data<T>();
  update_loop(c, var.elements(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = old[i] - lr * grad[i];
  });
  c.set_output(0, std::move(var));
  return ok_status();
}

Status descend_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? descend<float>(c) : descend<double>(c);
}

}  // namespace

TROUPE_OPS(sgd) {
  r.add({.name = "ApplyGradientDescent",
         .in = {"var: resource", "lr", "grad"},
         .types = "f32 f64",
         .attrs = {"replicas: int = 1"},
         .shape = dense_update_shape,
         .no_gradient = true,
         .stateful = true,
         .role = Role::write_variable,
         .reduce = {"grad"},
         .combine = Combine::mean,
         .doc = "var -= lr * grad, with the mean of the replicas' gradients."})
      .cpu(kernel<descend_any>);
}
