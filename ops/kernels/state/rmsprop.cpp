// ApplyRMSProp and ApplyCenteredRMSProp: steps scaled by a running mean of the squared gradient
// (Tieleman and Hinton, 2012), the second by the running variance (Graves, 2013).
#include <cmath>

#include "ops/cuda/update.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update_rows.hpp"

using namespace troupe;

namespace {

// Inputs: var, square, velocity, lr, rho, momentum, epsilon, and grad or indices and rows.
template <class T, bool kRows>
Status scale(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto square, NewValue<T>::of(c, 1));
  TROUPE_TRY(auto velocity, NewValue<T>::of(c, 2));
  const formula::RmsPropStep<T> step{scalar_operand<T>(c, 3), scalar_operand<T>(c, 4),
                                     scalar_operand<T>(c, 5), scalar_operand<T>(c, 6)};
  TROUPE_TRY((update_by<T, kRows>(c, 7, step, var, square, velocity)));
  c.set_output(0, var.take());
  c.set_output(1, square.take());
  c.set_output(2, velocity.take());
  return ok_status();
}

// Inputs: var, mean, square, velocity, lr, rho, momentum, epsilon, and grad or indices and rows.
template <class T, bool kRows>
Status scale_centered(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto mean, NewValue<T>::of(c, 1));
  TROUPE_TRY(auto square, NewValue<T>::of(c, 2));
  TROUPE_TRY(auto velocity, NewValue<T>::of(c, 3));
  const formula::CenteredRmsPropStep<T> step{scalar_operand<T>(c, 4), scalar_operand<T>(c, 5),
                                             scalar_operand<T>(c, 6), scalar_operand<T>(c, 7)};
  TROUPE_TRY((update_by<T, kRows>(c, 8, step, var, mean, square, velocity)));
  c.set_output(0, var.take());
  c.set_output(1, mean.take());
  c.set_output(2, square.take());
  c.set_output(3, velocity.take());
  return ok_status();
}

template <bool kRows>
Status scale_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? scale<float, kRows>(c) : scale<double, kRows>(c);
}
template <bool kRows>
Status scale_centered_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? scale_centered<float, kRows>(c)
                                          : scale_centered<double, kRows>(c);
}

}  // namespace

TROUPE_OPS(rmsprop) {
  add_update<kernel<scale_any<false>>, cuda::rmsprop>(
      r, {.name = "ApplyRMSProp",
          .in = {"var: resource", "square: resource", "velocity: resource", "lr", "rho", "momentum",
                 "epsilon", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "square += (1 - rho) (grad^2 - square); velocity = momentum * velocity + grad / "
                 "(sqrt(square) + epsilon); var -= lr * velocity."});
  add_update<kernel<scale_centered_any<false>>, cuda::centered_rmsprop>(
      r, {.name = "ApplyCenteredRMSProp",
          .in = {"var: resource", "mean: resource", "square: resource", "velocity: resource", "lr",
                 "rho", "momentum", "epsilon", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "mean += (1 - rho) (grad - mean); square += (1 - rho) (grad^2 - square); velocity "
                 "= momentum * velocity + grad / (sqrt(max(square - mean^2, 0)) + epsilon); var -= "
                 "lr * velocity."});
  const std::string rest =
      " for the places that `rows` are for alone, by their `indices`: the means, velocity and var "
      "of "
      "all others keep their values. Rows of one place are added up. An index outside is an error.";
  add_rows_update<kernel<scale_any<true>>>(
      r, {.name = "ApplySparseRMSProp",
          .in = {"var: resource", "square: resource", "velocity: resource", "lr", "rho", "momentum",
                 "epsilon"},
          .doc = "ApplyRMSProp" + rest});
  add_rows_update<kernel<scale_centered_any<true>>>(
      r, {.name = "ApplySparseCenteredRMSProp",
          .in = {"var: resource", "mean: resource", "square: resource", "velocity: resource", "lr",
                 "rho", "momentum", "epsilon"},
          .doc = "ApplyCenteredRMSProp" + rest});
}
