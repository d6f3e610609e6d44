// ApplyAdam: steps scaled by running moments of the gradient (Kingma and Ba, 2015).
#include <cmath>

#include "ops/kernels/update.hpp"

using namespace troupe;

namespace {

// Inputs: var, m, v, step, lr, beta1, beta2, epsilon, grad. The step count is a variable of the
// parameter's own, so that the rule needs nothing besides its operands: no other write can come
// between a power of beta and its use.
template <class T>
Status adapt(KernelContext& c) {
  TROUPE_TRY(Tensor var, new_value<T>(c, 0));
  TROUPE_TRY(Tensor m, new_value<T>(c, 1));
  TROUPE_TRY(Tensor v, new_value<T>(c, 2));
  const std::int64_t t = scalar_operand<std::int64_t>(c, 3) + 1;
  TROUPE_TRY(Tensor step, new_value<std::int64_t>(c, 3));
  const T lr = scalar_operand<T>(c, 4), beta1 = scalar_operand<T>(c, 5),
          beta2 = scalar_operand<T>(c, 6), epsilon = scalar_operand<T>(c, 7);
  // Both bias corrections in one factor, in double: they are costly once and cheap for ever.
  const T rate = T(double(lr) * std::sqrt(1 - std::pow(double(beta2), double(t))) /
                   (1 - std::pow(double(beta1), double(t))));
  const T *old_var = c.input(0).data<T>(), *old_m = c.input(1).data<T>(),
          *old_v = c.input(2).data<T>(), *grad = c.input(8).data<T>();
  T *new_var = var.mutable_data<T>(), *new_m = m.mutable_data<T>(), *new_v = v.mutable_data<T>();
  update_loop(c, var.elements(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T g = grad[i];
      const T m_i = old_m[i] + (g - old_m[i]) * (1 - beta1);
      const T v_i = old_v[i] + (g * g - old_v[i]) * (1 - beta2);
      new_var[i] = old_var[i] - rate * m_i / (std::sqrt(v_i) + epsilon);
      new_m[i] = m_i;
      new_v[i] = v_i;
    }
  });
  *step.mutable_data<std::int64_t>() = t;
  c.set_output(0, std::move(var));
  c.set_output(1, std::move(m));
  c.set_output(2, std::move(v));
  c.set_output(3, std::move(step));
  return ok_status();
}

Status adapt_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? adapt<float>(c) : adapt<double>(c);
}

}  // namespace

TROUPE_OPS(adam) {
  r.add({.name = "ApplyAdam",
         .in = {"var: resource", "m: resource", "v: resource", "step: resource", "lr", "beta1",
                "beta2", "epsilon", "grad"},
         .types = "f32 f64",
         .attrs = {"replicas: int = 1"},
         .shape = dense_update_shape,
         .no_gradient = true,
         .stateful = true,
         .role = Role::write_variable,
         .reduce = {"grad"},
         .combine = Combine::mean,
         .doc = "t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); "
                "var -= lr sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon); step = t. "
                "m and v are shaped like var, step is an i64 scalar."})
      .cpu(kernel<adapt_any>);
}
