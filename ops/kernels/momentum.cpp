// ApplyMomentum: gradient descent with a velocity, plain or Nesterov's.
#include "ops/kernels/update.hpp"

using namespace troupe;

namespace {

template <class T, bool Nesterov>
Status push(KernelContext& c) {
  TROUPE_TRY(Tensor var, new_value<T>(c, 0));
  TROUPE_TRY(Tensor accum, new_value<T>(c, 1));
  const T *old_var = c.input(0).data<T>(), *old_accum = c.input(1).data<T>();
  const T lr = scalar_operand<T>(c, 2);
  const T* grad = c.input(3).data<T>();
  const T momentum = scalar_operand<T>(c, 4);
  T *new_var = var.mutable_data<T>(), *new_accum = accum.mutable_data<T>();
  update_loop(c, var.elements(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T g = grad[i], v = momentum * old_accum[i] + g;
      new_var[i] = old_var[i] - lr * (Nesterov ? g + momentum * v : v);
      new_accum[i] = v;
    }
  });
  c.set_output(0, std::move(var));
  c.set_output(1, std::move(accum));
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
  r.add({.name = "ApplyMomentum",
         .in = {"var: resource", "accum: resource", "lr", "grad", "momentum"},
         .types = "f32 f64",
         .attrs = {"nesterov: bool = false", "replicas: int = 1"},
         .shape = dense_update_shape,
         .no_gradient = true,
         .stateful = true,
         .role = Role::write_variable,
         .reduce = {"grad"},
         .combine = Combine::mean,
         .doc = "accum = momentum * accum + grad; var -= lr * accum, or with `nesterov` "
                "var -= lr * (grad + momentum * accum)."})
      .cpu(make_momentum);
}
