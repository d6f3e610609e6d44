// ApplyMomentum: gradient descent with a velocity, plain or Nesterov's.
#include "ops/kernels/state/update.hpp"

using namespace troupe;

namespace {

template <class T, bool Nesterov>
Status push(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto accum, NewValue<T>::of(c, 1));
  const T lr = scalar_operand<T>(c, 2), momentum = scalar_operand<T>(c, 4);
  auto step = [=](T& x, T& velocity, T gradient) {
    velocity = momentum * velocity + gradient;
    x -= lr * (Nesterov ? gradient + momentum * velocity : velocity);
  };
  update_elements(c, c.input(3).data<T>(), step, var, accum);
  c.set_output(0, var.take());
  c.set_output(1, accum.take());
  return ok_status();
}

template <bool Nesterov>
Status push_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? push<float, Nesterov>(c) : push<double, Nesterov>(c);
}

Expected<std::unique_ptr<Kernel>> make_momentum(const KernelSpec& spec) {
  return spec.bool_attr("nesterov") ? kernel<push_any<true>>(spec) : kernel<push_any<false>>(spec);
}

}  // namespace

TROUPE_OPS(momentum) {
  add_update<make_momentum>(
      r, {.name = "ApplyMomentum",
          .in = {"var: resource", "accum: resource", "lr", "grad", "momentum"},
          .types = "f32 f64",
          .attrs = {"nesterov: bool = false"},
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "accum = momentum * accum + grad; var -= lr * accum, or with `nesterov` var -= lr "
                 "* (grad + momentum * accum)."});
}
