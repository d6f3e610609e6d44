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
  return c.input(0).dtype() == DType::f32 ? descend<float, kRows>(c) : descend<double, kRows>(c);
}

}  // namespace

TROUPE_OPS(sgd) {
  add_update<kernel<descend_any<false>>, cuda::descend>(
      r, {.name = "ApplyGradientDescent",
          .in = {"var: resource", "lr", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "var -= lr * grad, with the mean of the replicas' gradients."});
  add_rows_update<kernel<descend_any<true>>>(
      r,
      {.name = "ApplySparseGradientDescent",
       .in = {"var: resource", "lr"},
       .doc = "ApplyGradientDescent with a gradient that is 0 except for `rows` at `indices`; rows "
              "with the same index are added up. An index out of range is an error."});
}
