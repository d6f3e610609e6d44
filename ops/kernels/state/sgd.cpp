// ApplyGradientDescent: var -= lr * grad, and the same for some rows.
#include "ops/cuda/update.hpp"
#include "ops/kernels/state/update_rows.hpp"

using namespace troupe;

namespace {

// Inputs: var, lr, and grad or indices and rows.
template <class T, bool kRows>
Status descend(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  const T lr = scalar_operand<T>(c, 1);
  auto step = [=](T& x, T gradient) { x -= lr * gradient; };
  TROUPE_TRY((update_by<T, kRows>(c, 2, step, var)));
  c.set_output(0, var.take());
  return ok_status();
}

template <bool kRows>
Status descend_any(KernelContext& c) {
  return with_parts(c.input(0).dtype(),
                    [&](auto tag) { return descend<typename decltype(tag)::type, kRows>(c); });
}

}  // namespace

TROUPE_OPS(sgd) {
  add_update<kernel<descend_any<false>>, cuda::descend>(
      r, {.name = "ApplyGradientDescent",
          .in = {"var: resource", "lr", "grad"},
          .types = kRealsAndComplex,
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "var -= lr * grad, with the mean of the replicas' gradients."});
  add_rows_update<kernel<descend_any<true>>>(
      r,
      {.name = "ApplySparseGradientDescent",
       .in = {"var: resource", "lr"},
       .types = kRealsAndComplex,
       .doc = "ApplyGradientDescent with a gradient that is 0 except for `rows` at `indices`; rows "
              "with the same index are added up. An index out of range is an error."});
}
