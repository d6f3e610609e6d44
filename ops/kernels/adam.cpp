// ApplyAdam: steps scaled by running moments of the gradient (Kingma and Ba, 2015).
#include <cmath>

#include "troupe/ops/kernels/update.hpp"

using namespace troupe;

namespace {

// Inputs: var, m, v, step, lr, beta1, beta2, epsilon, grad. The step count is a variable of the
// parameter's own, so that the rule needs nothing besides its operands: no other write can come
// between a power of beta and its use.
template <class T>
Status adapt(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto m, NewValue<T>::of(c, 1));
  TROUPE_TRY(auto v, NewValue<T>::of(c, 2));
  TROUPE_TRY(auto count, NewValue<std::int64_t>::of(c, 3));
  const std::int64_t t = *count.bring(0, 1) += 1;
  const T lr = scalar_operand<T>(c, 4), beta1 = scalar_operand<T>(c, 5),
          beta2 = scalar_operand<T>(c, 6), epsilon = scalar_operand<T>(c, 7);
  // Both bias corrections in one factor, in double: they are costly once and cheap for ever.
  const T rate = T(double(lr) * std::sqrt(1 - std::pow(double(beta2), double(t))) /
                   (1 - std::pow(double(beta1), double(t))));
  auto step = [=](T& x, T& m_i, T& v_i, T g) {
    m_i += (g - m_i) * (1 - beta1);
    v_i += (g * g - v_i) * (1 - beta2);
    x -= rate * m_i / (std::sqrt(v_i) + epsilon);
  };
  update_elements(c, c.input(8).data<T>(), step, var, m, v);
  c.set_output(0, var.take());
  c.set_output(1, m.take());
  c.set_output(2, v.take());
  c.set_output(3, count.take());
  return ok_status();
}

Status adapt_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? adapt<float>(c) : adapt<double>(c);
}

}  // namespace

TROUPE_OPS(adam) {
  r.add(dense_update(
            {.name = "ApplyAdam",
             .in = {"var: resource", "m: resource", "v: resource", "step: resource of i64", "lr",
                    "beta1", "beta2", "epsilon", "grad"},
             .types = "f32 f64",
             .reduce = {"grad"},
             .combine = Combine::mean,
             .doc =
                 "t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); "
                 "var -= lr sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon); step = t. "
                 "m and v are shaped like var, step is an i64 scalar."}))
      .cpu(kernel<adapt_any>);
}
