// ApplyAdagrad and ApplyProximalAdagrad: steps scaled by the sum of all squared gradients (Duchi,
// Hazan and Singer, 2011), the second with forward-backward splitting (Duchi and Singer, 2009).
#include "ops/cuda/update.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update_rows.hpp"

using namespace troupe;

namespace {

// Inputs: var, accum, lr, initial, epsilon, and grad or indices and rows.
template <class T, bool kRows>
Status adagrad(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto accum, NewValue<T>::of(c, 1));
  const formula::AdagradStep<T> step{scalar_operand<T>(c, 2), scalar_operand<T>(c, 3),
                                     scalar_operand<T>(c, 4)};
  TROUPE_TRY((update_by<T, kRows>(c, 5, step, var, accum)));
  c.set_output(0, var.take());
  c.set_output(1, accum.take());
  return ok_status();
}

// Inputs: var, accum, lr, initial, l1, l2, and grad or indices and rows.
template <class T, bool kRows>
Status proximal_adagrad(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto accum, NewValue<T>::of(c, 1));
  const formula::ProximalAdagradStep<T> step{scalar_operand<T>(c, 2), scalar_operand<T>(c, 3),
                                             scalar_operand<T>(c, 4), scalar_operand<T>(c, 5)};
  TROUPE_TRY((update_by<T, kRows>(c, 6, step, var, accum)));
  c.set_output(0, var.take());
  c.set_output(1, accum.take());
  return ok_status();
}

template <bool kRows>
Status adagrad_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? adagrad<float, kRows>(c) : adagrad<double, kRows>(c);
}
template <bool kRows>
Status proximal_adagrad_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? proximal_adagrad<float, kRows>(c)
                                          : proximal_adagrad<double, kRows>(c);
}

}  // namespace

TROUPE_OPS(adagrad) {
  add_update<kernel<adagrad_any<false>>, cuda::adagrad>(
      r, {.name = "ApplyAdagrad",
          .in = {"var: resource", "accum: resource", "lr", "initial", "epsilon", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "accum += grad^2; var -= lr * grad / (sqrt(accum + initial) + epsilon)."});
  add_rows_update<kernel<adagrad_any<true>>>(
      r, {.name = "ApplySparseAdagrad",
          .in = {"var: resource", "accum: resource", "lr", "initial", "epsilon"},
          .doc = "ApplyAdagrad with a gradient that is 0 but for `rows` at `indices`; those of one "
                 "place are added up. An index outside is an error."});
  add_update<kernel<proximal_adagrad_any<false>>, cuda::proximal_adagrad>(
      r, {.name = "ApplyProximalAdagrad",
          .in = {"var: resource", "accum: resource", "lr", "initial", "l1", "l2", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "accum += grad^2; rate = lr / sqrt(accum + initial); p = var - rate * grad; var = "
                 "sign(p) * max(|p| - rate * l1, 0) / (1 + rate * l2). A gradient of 0 while accum "
                 "+ initial is 0 gives NaN."});
  add_rows_update<kernel<proximal_adagrad_any<true>>>(
      r, {.name = "ApplySparseProximalAdagrad",
          .in = {"var: resource", "accum: resource", "lr", "initial", "l1", "l2"},
          .doc = "ApplyProximalAdagrad for the places that `rows` are for alone, by their "
                 "`indices`: all others keep their values, and move no further towards 0. Rows of "
                 "one place are added up. An index outside is an error."});
}
