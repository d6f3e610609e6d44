// ApplyProximalGradientDescent: gradient descent with forward-backward splitting (Duchi and Singer,
// 2009).
#include "ops/cuda/update.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update_rows.hpp"

using namespace troupe;

namespace {

// Inputs: var, lr, l1, l2, and grad or indices and rows.
template <class T, bool kRows>
Status proximal(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  const formula::ProximalStep<T> step{scalar_operand<T>(c, 1), scalar_operand<T>(c, 2),
                                      scalar_operand<T>(c, 3)};
  TROUPE_TRY((update_by<T, kRows>(c, 4, step, var)));
  c.set_output(0, var.take());
  return ok_status();
}

template <bool kRows>
Status proximal_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? proximal<float, kRows>(c) : proximal<double, kRows>(c);
}

}  // namespace

TROUPE_OPS(proximal_sgd) {
  add_update<kernel<proximal_any<false>>, cuda::proximal>(
      r, {.name = "ApplyProximalGradientDescent",
          .in = {"var: resource", "lr", "l1", "l2", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "p = var - lr * grad; var = sign(p) * max(|p| - lr * l1, 0) / (1 + lr * l2)."});
  add_rows_update<kernel<proximal_any<true>>>(
      r, {.name = "ApplySparseProximalGradientDescent",
          .in = {"var: resource", "lr", "l1", "l2"},
          .doc = "ApplyProximalGradientDescent for the places that `rows` are for alone, by their "
                 "`indices`: all others keep their values, and move no further towards 0. Rows of "
                 "one place are added up. An index outside is an error."});
}
