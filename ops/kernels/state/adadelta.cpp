// ApplyAdadelta: steps in the unit of the variable, from running means of squares (Zeiler, 2012).
#include <cmath>

#include "ops/cuda/update.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update_rows.hpp"

using namespace troupe;

namespace {

// Inputs: var, square, moved, lr, rho, epsilon, and grad or indices and rows.
template <class T, bool kRows>
Status adadelta(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto square, NewValue<T>::of(c, 1));
  TROUPE_TRY(auto moved, NewValue<T>::of(c, 2));
  const formula::AdadeltaStep<T> step{scalar_operand<T>(c, 3), scalar_operand<T>(c, 4),
                                      scalar_operand<T>(c, 5)};
  TROUPE_TRY((update_by<T, kRows>(c, 6, step, var, square, moved)));
  c.set_output(0, var.take());
  c.set_output(1, square.take());
  c.set_output(2, moved.take());
  return ok_status();
}

template <bool kRows>
Status adadelta_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? adadelta<float, kRows>(c) : adadelta<double, kRows>(c);
}

}  // namespace

TROUPE_OPS(adadelta) {
  add_update<kernel<adadelta_any<false>>, cuda::adadelta>(
      r, {.name = "ApplyAdadelta",
          .in = {"var: resource", "square: resource", "moved: resource", "lr", "rho", "epsilon",
                 "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "square += (1 - rho) (grad^2 - square); move = sqrt(moved + epsilon) / "
                 "sqrt(square + epsilon) * grad; moved += (1 - rho) (move^2 - moved); var -= lr * "
                 "move."});
  add_rows_update<kernel<adadelta_any<true>>>(
      r, {.name = "ApplySparseAdadelta",
          .in = {"var: resource", "square: resource", "moved: resource", "lr", "rho", "epsilon"},
          .doc = "ApplyAdadelta for the places that `rows` are for alone, by their `indices`: "
                 "square, moved and var of all others keep their values. Rows of one place are "
                 "added up. An index outside is an error."});
}
