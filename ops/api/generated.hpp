// Typed wrappers of all ops. Written by troupe-gen from the op definitions; do not edit.
// clang-format off
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/builder.hpp"
#include "ops/api/ints.hpp"
#include "ops/api/operators.hpp"

namespace troupe {

// Acos: The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]. The gradient at 1 and -1 is
// -inf.
Output acos(Output x, Site site = Site::here());

// Acosh: The nonnegative inverse of Cosh; NaN below 1. The gradient at 1 is inf.
Output acosh(Output x, Site site = Site::here());

// Add: y = a + b. Integers wrap around. The inputs broadcast.
Output add(const Operand& a, const Operand& b, Site site = Site::here());

// AddN: The sum of one or more tensors of equal shape, added from left to right.
Output add_n(const std::vector<Output>& values, Site site = Site::here());

struct AllOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// All: True if all elements are true. Reduces the dimensions `axes`, or all if the list is empty;
// keep_dims keeps them with size 1.
Output all(Output x, const AllOptions& options = {}, Site site = Site::here());
template <class = void>
Output all(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return all(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// Angle: The angle in [-pi, pi] of z in the complex plane, with the signs of C's atan2. The
// gradient at 0 is 0.
Output angle(Output z, Site site = Site::here());

struct AnyOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Any: True if any element is true. Reduces the dimensions `axes`, or all if the list is empty;
// keep_dims keeps them with size 1.
Output any(Output x, const AnyOptions& options = {}, Site site = Site::here());
template <class = void>
Output any(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return any(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

struct ApplyAdadeltaOptions {
  std::int64_t replicas = 1;
};
// ApplyAdadelta: square += (1 - rho) (grad^2 - square); move = sqrt(moved + epsilon) / sqrt(square
// + epsilon) * grad; moved += (1 - rho) (move^2 - moved); var -= lr * move.
Op apply_adadelta(Output var, Output square, Output moved, Output lr, Output rho, Output epsilon,
    Output grad, const ApplyAdadeltaOptions& options = {}, Site site = Site::here());

struct ApplyAdadeltaWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyAdadeltaWhen: As ApplyAdadelta, in a run in which `when` is true; nothing changes in others.
Op apply_adadelta_when(Output var, Output square, Output moved, Output lr, Output rho,
    Output epsilon, Output grad, Output when, const ApplyAdadeltaWhenOptions& options = {},
    Site site = Site::here());

struct ApplyAdagradOptions {
  std::int64_t replicas = 1;
};
// ApplyAdagrad: accum += grad^2; var -= lr * grad / (sqrt(accum + initial) + epsilon).
Op apply_adagrad(Output var, Output accum, Output lr, Output initial, Output epsilon,
    Output grad, const ApplyAdagradOptions& options = {}, Site site = Site::here());

struct ApplyAdagradWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyAdagradWhen: As ApplyAdagrad, in a run in which `when` is true; nothing changes in others.
Op apply_adagrad_when(Output var, Output accum, Output lr, Output initial, Output epsilon,
    Output grad, Output when, const ApplyAdagradWhenOptions& options = {},
    Site site = Site::here());

struct ApplyAdamOptions {
  std::int64_t replicas = 1;
};
// ApplyAdam: t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= lr
// sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon); step = t. m and v have the shape of
// var, step is an i64 scalar. A gradient whose square overflows (in f32 above 1.8e19) makes v
// infinite and all later updates 0. Of a complex variable each part is a number of its own.
Op apply_adam(Output var, Output m, Output v, Output step, Output lr, Output beta1, Output beta2,
    Output epsilon, Output grad, const ApplyAdamOptions& options = {}, Site site = Site::here());

struct ApplyAdamWOptions {
  std::int64_t replicas = 1;
};
// ApplyAdamW: t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= lr *
// decay * var; var -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon); step = t. m and
// v have the shape of var, step is an i64 scalar. A gradient whose square overflows (in f32 above
// 1.8e19) makes v infinite and all later updates 0.
Op apply_adam_w(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output grad, Output decay,
    const ApplyAdamWOptions& options = {}, Site site = Site::here());

struct ApplyAdamWWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyAdamWWhen: As ApplyAdamW, in a run in which `when` is true; nothing changes in others.
Op apply_adam_w_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output grad, Output decay, Output when,
    const ApplyAdamWWhenOptions& options = {}, Site site = Site::here());

struct ApplyAdamWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyAdamWhen: As ApplyAdam, in a run in which `when` is true; nothing changes in others.
Op apply_adam_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output grad, Output when,
    const ApplyAdamWhenOptions& options = {}, Site site = Site::here());

struct ApplyCenteredRMSPropOptions {
  std::int64_t replicas = 1;
};
// ApplyCenteredRMSProp: mean += (1 - rho) (grad - mean); square += (1 - rho) (grad^2 - square);
// velocity = momentum * velocity + grad / (sqrt(max(square - mean^2, 0)) + epsilon); var -= lr *
// velocity.
Op apply_centered_rms_prop(Output var, Output mean, Output square, Output velocity, Output lr,
    Output rho, Output momentum, Output epsilon, Output grad,
    const ApplyCenteredRMSPropOptions& options = {}, Site site = Site::here());

struct ApplyCenteredRMSPropWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyCenteredRMSPropWhen: As ApplyCenteredRMSProp, in a run in which `when` is true; nothing
// changes in others.
Op apply_centered_rms_prop_when(Output var, Output mean, Output square, Output velocity,
    Output lr, Output rho, Output momentum, Output epsilon, Output grad, Output when,
    const ApplyCenteredRMSPropWhenOptions& options = {}, Site site = Site::here());

struct ApplyFtrlOptions {
  std::int64_t replicas = 1;
};
// ApplyFtrl: before = sqrt(accum + initial); accum += grad^2; after = sqrt(accum + initial); linear
// += grad - (after - before) / lr * var; var = 0 where |linear| <= l1, else -sign(linear) (|linear|
// - l1) / (after / lr + 2 l2). lr = 0 gives NaN.
Op apply_ftrl(Output var, Output accum, Output linear, Output lr, Output initial, Output l1,
    Output l2, Output grad, const ApplyFtrlOptions& options = {}, Site site = Site::here());

struct ApplyFtrlWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyFtrlWhen: As ApplyFtrl, in a run in which `when` is true; nothing changes in others.
Op apply_ftrl_when(Output var, Output accum, Output linear, Output lr, Output initial, Output l1,
    Output l2, Output grad, Output when, const ApplyFtrlWhenOptions& options = {},
    Site site = Site::here());

struct ApplyGradientDescentOptions {
  std::int64_t replicas = 1;
};
// ApplyGradientDescent: var -= lr * grad, with the mean of the replicas' gradients.
Op apply_gradient_descent(Output var, Output lr, Output grad,
    const ApplyGradientDescentOptions& options = {}, Site site = Site::here());

struct ApplyGradientDescentWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyGradientDescentWhen: As ApplyGradientDescent, in a run in which `when` is true; nothing
// changes in others.
Op apply_gradient_descent_when(Output var, Output lr, Output grad, Output when,
    const ApplyGradientDescentWhenOptions& options = {}, Site site = Site::here());

struct ApplyLambOptions {
  std::int64_t replicas = 1;
};
// ApplyLamb: t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); move = m /
// (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + decay * var; var -= lr * |var| / |move| *
// move, with the Euclidean norms of the whole variable; if one of them is 0, their ratio is 1. step
// = t.
Op apply_lamb(Output var, Output m, Output v, Output step, Output lr, Output beta1, Output beta2,
    Output epsilon, Output grad, Output decay, const ApplyLambOptions& options = {},
    Site site = Site::here());

struct ApplyLambWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyLambWhen: As ApplyLamb, in a run in which `when` is true; nothing changes in others.
Op apply_lamb_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output grad, Output decay, Output when,
    const ApplyLambWhenOptions& options = {}, Site site = Site::here());

struct ApplyMomentumOptions {
  bool nesterov = false;
  std::int64_t replicas = 1;
};
// ApplyMomentum: accum = momentum * accum + grad; var -= lr * accum, or with `nesterov` var -= lr *
// (grad + momentum * accum).
Op apply_momentum(Output var, Output accum, Output lr, Output grad, Output momentum,
    const ApplyMomentumOptions& options = {}, Site site = Site::here());

struct ApplyMomentumWhenOptions {
  bool nesterov = false;
  std::int64_t replicas = 1;
};
// ApplyMomentumWhen: As ApplyMomentum, in a run in which `when` is true; nothing changes in others.
Op apply_momentum_when(Output var, Output accum, Output lr, Output grad, Output momentum,
    Output when, const ApplyMomentumWhenOptions& options = {}, Site site = Site::here());

struct ApplyMovingAverageOptions {
  bool training_only = false;
  std::int64_t replicas = 1;
};
// ApplyMovingAverage: var += rate * (value - var), with the mean of the replicas' values. A
// training step updates every average of values that its loss is computed from. In a function, a
// training_only write is left out of all other steps.
Op apply_moving_average(Output var, Output rate, Output value,
    const ApplyMovingAverageOptions& options = {}, Site site = Site::here());

struct ApplyMovingAverageWhenOptions {
  bool training_only = false;
  std::int64_t replicas = 1;
};
// ApplyMovingAverageWhen: As ApplyMovingAverage, in a run in which `when` is true; nothing changes
// in others.
Op apply_moving_average_when(Output var, Output rate, Output value, Output when,
    const ApplyMovingAverageWhenOptions& options = {}, Site site = Site::here());

struct ApplyProximalAdagradOptions {
  std::int64_t replicas = 1;
};
// ApplyProximalAdagrad: accum += grad^2; rate = lr / sqrt(accum + initial); p = var - rate * grad;
// var = sign(p) * max(|p| - rate * l1, 0) / (1 + rate * l2). A gradient of 0 while accum + initial
// is 0 gives NaN.
Op apply_proximal_adagrad(Output var, Output accum, Output lr, Output initial, Output l1,
    Output l2, Output grad, const ApplyProximalAdagradOptions& options = {},
    Site site = Site::here());

struct ApplyProximalAdagradWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyProximalAdagradWhen: As ApplyProximalAdagrad, in a run in which `when` is true; nothing
// changes in others.
Op apply_proximal_adagrad_when(Output var, Output accum, Output lr, Output initial, Output l1,
    Output l2, Output grad, Output when, const ApplyProximalAdagradWhenOptions& options = {},
    Site site = Site::here());

struct ApplyProximalGradientDescentOptions {
  std::int64_t replicas = 1;
};
// ApplyProximalGradientDescent: p = var - lr * grad; var = sign(p) * max(|p| - lr * l1, 0) / (1 +
// lr * l2).
Op apply_proximal_gradient_descent(Output var, Output lr, Output l1, Output l2, Output grad,
    const ApplyProximalGradientDescentOptions& options = {}, Site site = Site::here());

struct ApplyProximalGradientDescentWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyProximalGradientDescentWhen: As ApplyProximalGradientDescent, in a run in which `when` is
// true; nothing changes in others.
Op apply_proximal_gradient_descent_when(Output var, Output lr, Output l1, Output l2, Output grad,
    Output when, const ApplyProximalGradientDescentWhenOptions& options = {},
    Site site = Site::here());

struct ApplyRMSPropOptions {
  std::int64_t replicas = 1;
};
// ApplyRMSProp: square += (1 - rho) (grad^2 - square); velocity = momentum * velocity + grad /
// (sqrt(square) + epsilon); var -= lr * velocity.
Op apply_rms_prop(Output var, Output square, Output velocity, Output lr, Output rho,
    Output momentum, Output epsilon, Output grad, const ApplyRMSPropOptions& options = {},
    Site site = Site::here());

struct ApplyRMSPropWhenOptions {
  std::int64_t replicas = 1;
};
// ApplyRMSPropWhen: As ApplyRMSProp, in a run in which `when` is true; nothing changes in others.
Op apply_rms_prop_when(Output var, Output square, Output velocity, Output lr, Output rho,
    Output momentum, Output epsilon, Output grad, Output when,
    const ApplyRMSPropWhenOptions& options = {}, Site site = Site::here());

struct ApplySparseAdadeltaOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdadelta: ApplyAdadelta for the places that `rows` are for alone, by their `indices`:
// square, moved and var of all others keep their values. Rows of one place are added up. An index
// outside is an error.
Op apply_sparse_adadelta(Output var, Output square, Output moved, Output lr, Output rho,
    Output epsilon, Output indices, Output rows, const ApplySparseAdadeltaOptions& options = {},
    Site site = Site::here());

struct ApplySparseAdadeltaWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdadeltaWhen: As ApplySparseAdadelta, in a run in which `when` is true; nothing
// changes in others.
Op apply_sparse_adadelta_when(Output var, Output square, Output moved, Output lr, Output rho,
    Output epsilon, Output indices, Output rows, Output when,
    const ApplySparseAdadeltaWhenOptions& options = {}, Site site = Site::here());

struct ApplySparseAdagradOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdagrad: ApplyAdagrad with a gradient that is 0 but for `rows` at `indices`; those of
// one place are added up. An index outside is an error.
Op apply_sparse_adagrad(Output var, Output accum, Output lr, Output initial, Output epsilon,
    Output indices, Output rows, const ApplySparseAdagradOptions& options = {},
    Site site = Site::here());

struct ApplySparseAdagradWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdagradWhen: As ApplySparseAdagrad, in a run in which `when` is true; nothing changes
// in others.
Op apply_sparse_adagrad_when(Output var, Output accum, Output lr, Output initial, Output epsilon,
    Output indices, Output rows, Output when, const ApplySparseAdagradWhenOptions& options = {},
    Site site = Site::here());

struct ApplySparseAdamOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdam: ApplyAdam for the places that `rows` are for alone, by their `indices`: m, v and
// var of all others keep their values, although step = t counts for them, too. Rows of one place
// are added up. An index outside is an error.
Op apply_sparse_adam(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output indices, Output rows,
    const ApplySparseAdamOptions& options = {}, Site site = Site::here());

struct ApplySparseAdamWOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdamW: ApplyAdamW for the rows at `indices` only: m, v and var of all other rows keep
// their values and do not decay, although step = t counts for them, too. Rows with the same index
// are added up. An index out of range is an error.
Op apply_sparse_adam_w(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output decay, Output indices, Output rows,
    const ApplySparseAdamWOptions& options = {}, Site site = Site::here());

struct ApplySparseAdamWWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdamWWhen: As ApplySparseAdamW, in a run in which `when` is true; nothing changes in
// others.
Op apply_sparse_adam_w_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output decay, Output indices, Output rows, Output when,
    const ApplySparseAdamWWhenOptions& options = {}, Site site = Site::here());

struct ApplySparseAdamWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdamWhen: As ApplySparseAdam, in a run in which `when` is true; nothing changes in
// others.
Op apply_sparse_adam_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output indices, Output rows, Output when,
    const ApplySparseAdamWhenOptions& options = {}, Site site = Site::here());

struct ApplySparseCenteredRMSPropOptions {
  std::int64_t replicas = 1;
};
// ApplySparseCenteredRMSProp: ApplyCenteredRMSProp for the places that `rows` are for alone, by
// their `indices`: the means, velocity and var of all others keep their values. Rows of one place
// are added up. An index outside is an error.
Op apply_sparse_centered_rms_prop(Output var, Output mean, Output square, Output velocity,
    Output lr, Output rho, Output momentum, Output epsilon, Output indices, Output rows,
    const ApplySparseCenteredRMSPropOptions& options = {}, Site site = Site::here());

struct ApplySparseCenteredRMSPropWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseCenteredRMSPropWhen: As ApplySparseCenteredRMSProp, in a run in which `when` is true;
// nothing changes in others.
Op apply_sparse_centered_rms_prop_when(Output var, Output mean, Output square, Output velocity,
    Output lr, Output rho, Output momentum, Output epsilon, Output indices, Output rows,
    Output when, const ApplySparseCenteredRMSPropWhenOptions& options = {},
    Site site = Site::here());

struct ApplySparseFtrlOptions {
  std::int64_t replicas = 1;
};
// ApplySparseFtrl: ApplyFtrl for the places that `rows` are for alone, by their `indices`: all
// others keep their values, although ApplyFtrl would make 0 of those that have seen no gradient.
// Rows of one place are added up. An index outside is an error.
Op apply_sparse_ftrl(Output var, Output accum, Output linear, Output lr, Output initial,
    Output l1, Output l2, Output indices, Output rows,
    const ApplySparseFtrlOptions& options = {}, Site site = Site::here());

struct ApplySparseFtrlWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseFtrlWhen: As ApplySparseFtrl, in a run in which `when` is true; nothing changes in
// others.
Op apply_sparse_ftrl_when(Output var, Output accum, Output linear, Output lr, Output initial,
    Output l1, Output l2, Output indices, Output rows, Output when,
    const ApplySparseFtrlWhenOptions& options = {}, Site site = Site::here());

struct ApplySparseGradientDescentOptions {
  std::int64_t replicas = 1;
};
// ApplySparseGradientDescent: ApplyGradientDescent with a gradient that is 0 except for `rows` at
// `indices`; rows with the same index are added up. An index out of range is an error.
Op apply_sparse_gradient_descent(Output var, Output lr, Output indices, Output rows,
    const ApplySparseGradientDescentOptions& options = {}, Site site = Site::here());

struct ApplySparseGradientDescentWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseGradientDescentWhen: As ApplySparseGradientDescent, in a run in which `when` is true;
// nothing changes in others.
Op apply_sparse_gradient_descent_when(Output var, Output lr, Output indices, Output rows,
    Output when, const ApplySparseGradientDescentWhenOptions& options = {},
    Site site = Site::here());

struct ApplySparseMomentumOptions {
  bool nesterov = false;
  std::int64_t replicas = 1;
};
// ApplySparseMomentum: ApplyMomentum for the places that `rows` are for alone, by their `indices`:
// accum and var of all others keep their values. Rows of one place are added up. An index outside
// is an error.
Op apply_sparse_momentum(Output var, Output accum, Output lr, Output momentum, Output indices,
    Output rows, const ApplySparseMomentumOptions& options = {}, Site site = Site::here());

struct ApplySparseMomentumWhenOptions {
  bool nesterov = false;
  std::int64_t replicas = 1;
};
// ApplySparseMomentumWhen: As ApplySparseMomentum, in a run in which `when` is true; nothing
// changes in others.
Op apply_sparse_momentum_when(Output var, Output accum, Output lr, Output momentum,
    Output indices, Output rows, Output when, const ApplySparseMomentumWhenOptions& options = {},
    Site site = Site::here());

struct ApplySparseProximalAdagradOptions {
  std::int64_t replicas = 1;
};
// ApplySparseProximalAdagrad: ApplyProximalAdagrad for the places that `rows` are for alone, by
// their `indices`: all others keep their values, and move no further towards 0. Rows of one place
// are added up. An index outside is an error.
Op apply_sparse_proximal_adagrad(Output var, Output accum, Output lr, Output initial, Output l1,
    Output l2, Output indices, Output rows,
    const ApplySparseProximalAdagradOptions& options = {}, Site site = Site::here());

struct ApplySparseProximalAdagradWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseProximalAdagradWhen: As ApplySparseProximalAdagrad, in a run in which `when` is true;
// nothing changes in others.
Op apply_sparse_proximal_adagrad_when(Output var, Output accum, Output lr, Output initial,
    Output l1, Output l2, Output indices, Output rows, Output when,
    const ApplySparseProximalAdagradWhenOptions& options = {}, Site site = Site::here());

struct ApplySparseProximalGradientDescentOptions {
  std::int64_t replicas = 1;
};
// ApplySparseProximalGradientDescent: ApplyProximalGradientDescent for the places that `rows` are
// for alone, by their `indices`: all others keep their values, and move no further towards 0. Rows
// of one place are added up. An index outside is an error.
Op apply_sparse_proximal_gradient_descent(Output var, Output lr, Output l1, Output l2,
    Output indices, Output rows, const ApplySparseProximalGradientDescentOptions& options = {},
    Site site = Site::here());

struct ApplySparseProximalGradientDescentWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseProximalGradientDescentWhen: As ApplySparseProximalGradientDescent, in a run in which
// `when` is true; nothing changes in others.
Op apply_sparse_proximal_gradient_descent_when(Output var, Output lr, Output l1, Output l2,
    Output indices, Output rows, Output when,
    const ApplySparseProximalGradientDescentWhenOptions& options = {}, Site site = Site::here());

struct ApplySparseRMSPropOptions {
  std::int64_t replicas = 1;
};
// ApplySparseRMSProp: ApplyRMSProp for the places that `rows` are for alone, by their `indices`:
// the means, velocity and var of all others keep their values. Rows of one place are added up. An
// index outside is an error.
Op apply_sparse_rms_prop(Output var, Output square, Output velocity, Output lr, Output rho,
    Output momentum, Output epsilon, Output indices, Output rows,
    const ApplySparseRMSPropOptions& options = {}, Site site = Site::here());

struct ApplySparseRMSPropWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseRMSPropWhen: As ApplySparseRMSProp, in a run in which `when` is true; nothing changes
// in others.
Op apply_sparse_rms_prop_when(Output var, Output square, Output velocity, Output lr, Output rho,
    Output momentum, Output epsilon, Output indices, Output rows, Output when,
    const ApplySparseRMSPropWhenOptions& options = {}, Site site = Site::here());

struct ArgMaxOptions {
  std::int64_t axis = -1;
};
// ArgMax: The position along `axis` of the first maximum, or of the first NaN if there is one. That
// dimension is removed; it must not be empty.
Output arg_max(Output x, const ArgMaxOptions& options = {}, Site site = Site::here());
template <Integer T>
Output arg_max(Output x, T axis, Site site = Site::here()) {
  return arg_max(x, {.axis = axis}, std::move(site));
}

struct ArgMinOptions {
  std::int64_t axis = -1;
};
// ArgMin: The position along `axis` of the first minimum, or of the first NaN if there is one. That
// dimension is removed; it must not be empty.
Output arg_min(Output x, const ArgMinOptions& options = {}, Site site = Site::here());
template <Integer T>
Output arg_min(Output x, T axis, Site site = Site::here()) {
  return arg_min(x, {.axis = axis}, std::move(site));
}

struct ArgSortOptions {
  std::int64_t axis = -1;
  bool descending = false;
};
// ArgSort: The positions of the elements along `axis`, in ascending or descending order of the
// elements. Equal elements keep their order, and -0 equals 0; a NaN is above all numbers, as NumPy
// sorts.
Output arg_sort(Output x, const ArgSortOptions& options = {}, Site site = Site::here());
template <Integer T>
Output arg_sort(Output x, T axis, Flag descending = false, Site site = Site::here()) {
  return arg_sort(x, {.axis = axis, .descending = descending}, std::move(site));
}

// Asin: The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]. The gradient at 1 and -1
// is inf.
Output asin(Output x, Site site = Site::here());

// Asinh: The inverse of Sinh.
Output asinh(Output x, Site site = Site::here());

struct AssertOptions {
  std::string message = "";
};
// Assert: Fails the run with `message` if the scalar condition is false. Nodes that rely on it need
// it as a control input.
Op assert_(Output condition, const AssertOptions& options = {}, Site site = Site::here());

struct AssignOptions {
  std::int64_t replicas = 1;
};
// Assign: Sets the variable to `value`, which may be its first. Of several replicas, the value of
// the first one counts.
Op assign(Output var, Output value, const AssignOptions& options = {}, Site site = Site::here());

struct AssignAddOptions {
  std::int64_t replicas = 1;
};
// AssignAdd: var += value, summed over replicas.
Op assign_add(Output var, Output value, const AssignAddOptions& options = {},
    Site site = Site::here());

struct AssignAddWhenOptions {
  std::int64_t replicas = 1;
};
// AssignAddWhen: As AssignAdd, in a run in which `when` is true; nothing changes in others.
Op assign_add_when(Output var, Output value, Output when,
    const AssignAddWhenOptions& options = {}, Site site = Site::here());

struct AssignSubOptions {
  std::int64_t replicas = 1;
};
// AssignSub: var -= value, summed over replicas.
Op assign_sub(Output var, Output value, const AssignSubOptions& options = {},
    Site site = Site::here());

struct AssignSubWhenOptions {
  std::int64_t replicas = 1;
};
// AssignSubWhen: As AssignSub, in a run in which `when` is true; nothing changes in others.
Op assign_sub_when(Output var, Output value, Output when,
    const AssignSubWhenOptions& options = {}, Site site = Site::here());

// Atan: The angle in [-pi/2, pi/2] whose tangent is x.
Output atan(Output x, Site site = Site::here());

// Atan2: The angle in [-pi, pi] of the point (x, y), with the signs of C's atan2. The gradient at
// (0, 0) and at infinities is 0. The inputs broadcast.
Output atan2(const Operand& y, const Operand& x, Site site = Site::here());

// Atanh: The inverse of Tanh; inf at 1, -inf at -1, NaN outside [-1, 1]. The gradient at 1 and -1
// is inf.
Output atanh(Output x, Site site = Site::here());

struct AudioSummaryOptions {
  std::int64_t max_outputs = 3;
};
// AudioSummary: A serialized Summary protocol buffer with the first `max_outputs` sounds of x,
// [batch,frames] or [batch,frames,channels] in [-1,1], as 16-bit WAV. `sample_rate` is in hertz.
// The tags are tag/audio/0, tag/audio/1..., or tag/audio if max_outputs is 1. Samples out of range
// are clipped; NaN is silence.
Output audio_summary(Output x, std::string tag, double sample_rate,
    const AudioSummaryOptions& options = {}, Site site = Site::here());

struct AvgPoolOptions {
  std::string padding = "VALID";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
};
// AvgPool: The mean of each window over height and width of x [n,h,w,c]; ksize and strides are
// [h,w] or [1,h,w,1]; explicit_paddings, with padding EXPLICIT, are [top,bottom,left,right].
// Padding does not count. f16 and bf16 are summed in f32 and rounded once.
Output avg_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    const AvgPoolOptions& options = {}, Site site = Site::here());
template <class = void>
Output avg_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    std::string padding, std::vector<std::int64_t> explicit_paddings = {},
    Site site = Site::here()) {
  return avg_pool(x, ksize, strides, {.padding = padding,
    .explicit_paddings = explicit_paddings}, std::move(site));
}

struct AvgPoolGradOptions {
  std::string padding = "VALID";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
};
// AvgPoolGrad: The gradient of AvgPool for images of shape x_sizes.
Output avg_pool_grad(Output x_sizes, Output dy, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const AvgPoolGradOptions& options = {},
    Site site = Site::here());

struct BatchMatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
// BatchMatMul: The matrix products of the last two dimensions of a [...,m,k] and b [...,k,n];
// leading dimensions broadcast as in numpy.matmul. Each product is MatMul's.
Output batch_mat_mul(Output a, Output b, const BatchMatMulOptions& options = {},
    Site site = Site::here());

// Bernoulli: Booleans, each true with probability p. A p outside [0, 1] is an error. New values in
// each run, the same for the same seed, node name and run.
Output bernoulli(Output p, Site site = Site::here());

// BiasAdd: y = x + bias, where bias has one element per channel: the last dimension of x.
Output bias_add(Output x, Output bias, Site site = Site::here());

// BiasAddGrad: The sum of dy over every dimension but the last. The sum has a fixed order.
Output bias_add_grad(Output dy, Site site = Site::here());

// Bincount: counts[v] is the number of elements of x that equal v, for v in [0, size); any other
// element is an error. For weights use UnsortedSegmentSum.
Output bincount(Output x, std::int64_t size, Site site = Site::here());

// BitwiseAnd: The bitwise and of a and b. The inputs broadcast.
Output bitwise_and(const Operand& a, const Operand& b, Site site = Site::here());

// BitwiseOr: The bitwise or of a and b. The inputs broadcast.
Output bitwise_or(const Operand& a, const Operand& b, Site site = Site::here());

// BitwiseXor: The bitwise exclusive or of a and b. The inputs broadcast.
Output bitwise_xor(const Operand& a, const Operand& b, Site site = Site::here());

// BroadcastTo: x broadcast to `shape`.
Output broadcast_to(Output x, Output shape, Site site = Site::here());

struct CTCLossOptions {
  std::int64_t blank = 0;
};
// CTCLoss: For each sequence: -log of the probability that logits [time, batch, classes] of its
// first `lengths` frames spell the first `label_lengths` of its labels [batch, most], by any path:
// each label and the class `blank` may be repeated in time, and blanks may stand anywhere, as they
// must between two equal labels. A sequence that is too short for its labels has the loss inf and
// the gradient 0. Gradients are of first and second order.
Output ctc_loss(Output logits, Output labels, Output label_lengths, Output lengths,
    const CTCLossOptions& options = {}, Site site = Site::here());

struct CTCLossGradOptions {
  std::int64_t blank = 0;
};
// CTCLossGrad: The gradient of CTCLoss for logits.
Output ctc_loss_grad(Output logits, Output labels, Output label_lengths, Output lengths,
    Output dy, const CTCLossGradOptions& options = {}, Site site = Site::here());

struct CTCLossGradGradOptions {
  std::int64_t blank = 0;
};
struct CTCLossGradGradOutputs {
  Output ddy;
  Output dlogits;
};
// CTCLossGradGrad: The gradient of CTCLossGrad for dy and logits.
CTCLossGradGradOutputs ctc_loss_grad_grad(Output logits, Output labels, Output label_lengths,
    Output lengths, Output dy, Output d, const CTCLossGradGradOptions& options = {},
    Site site = Site::here());

// Cast: x converted to another type. Floats are truncated to integers; values out of range become
// the nearest limit, NaN becomes 0. Integers keep their low bits; nonzero becomes true. A real
// number becomes a complex one without an imaginary part; of a complex one the real part is kept.
// No gradient flows through integers and bool.
Output cast(Output x, DType to, Site site = Site::here());

// Categorical: For each row of logits [batch, classes], n classes [batch, n], drawn with the
// probabilities softmax(logits). A class of probability 0 (logit -inf) is never drawn. A logit of
// NaN or inf is an error, as is a row without a class to draw. New values in each run, the same for
// the same seed, node name and run.
Output categorical(Output logits, std::int64_t n, Site site = Site::here());

// Ceil: The smallest integer not below x.
Output ceil(Output x, Site site = Site::here());

struct CheckNumericsOptions {
  std::string message = "CheckNumerics";
};
// CheckNumerics: y = x; fails the run if x has an infinity or a NaN, and names the first one.
Output check_numerics(Output x, const CheckNumericsOptions& options = {},
    Site site = Site::here());

// Cholesky: The lower triangular L with L L^T = (x + x^T) / 2, for matrices [..., n, n]; x itself
// should be symmetric. A matrix that is not positive definite is an error; one with non-finite
// elements gives NaN.
Output cholesky(Output x, Site site = Site::here());

// Complex: z = re + i im. The inputs broadcast.
Output complex(const Operand& re, const Operand& im, Site site = Site::here());

// ComplexAbs: y = |z|, without overflow between. The gradient is dy * z / |z|, at 0 it is 0.
Output complex_abs(Output z, Site site = Site::here());

struct ConcatOptions {
  std::int64_t axis = 0;
};
// Concat: The values concatenated along `axis`, the only dimension in which their shapes may
// differ; a negative axis counts from the end.
Output concat(const std::vector<Output>& values, const ConcatOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output concat(const std::vector<Output>& values, T axis, Site site = Site::here()) {
  return concat(values, {.axis = axis}, std::move(site));
}

struct ConcatGradOptions {
  std::int64_t axis = 0;
};
// ConcatGrad: dy split along `axis` into tensors of the given shapes, which must add up to its own:
// the gradient of Concat.
std::vector<Output> concat_grad(Output dy, const std::vector<Output>& shapes,
    const ConcatGradOptions& options = {}, Site site = Site::here());

// Conj: The conjugate of z: its imaginary part negated.
Output conj(Output z, Site site = Site::here());

struct Conv2DOptions {
  std::vector<std::int64_t> strides = {1, 1};
  std::string padding = "SAME";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
  std::vector<std::int64_t> dilations = {1, 1};
  std::int64_t groups = 1;
};
// Conv2D: Convolution of images x [n,h,w,c] with filter [h,w,c,k], giving [n,h',w',k]. strides and
// dilations are [h,w] or [1,h,w,1]; explicit_paddings, used with padding EXPLICIT, are
// [top,bottom,left,right]. SAME adds the least padding that puts every pixel into a window, with an
// odd one at the end. With `groups` the filter is [h,w,c/groups,k], and each group of output
// channels sees one group of input channels; groups = c is a depthwise convolution. f16 and bf16
// are summed in f32 and rounded once.
Output conv2d(Output x, Output filter, const Conv2DOptions& options = {},
    Site site = Site::here());
template <class = void>
Output conv2d(Output x, Output filter, Ints strides, std::string padding = "SAME",
    std::vector<std::int64_t> explicit_paddings = {},
    std::vector<std::int64_t> dilations = {1, 1}, std::int64_t groups = 1,
    Site site = Site::here()) {
  return conv2d(x, filter, {.strides = strides, .padding = padding,
    .explicit_paddings = explicit_paddings, .dilations = dilations, .groups = groups},
    std::move(site));
}

struct Conv2DBackpropFilterOptions {
  std::vector<std::int64_t> strides = {1, 1};
  std::string padding = "SAME";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
  std::vector<std::int64_t> dilations = {1, 1};
  std::int64_t groups = 1;
};
// Conv2DBackpropFilter: The gradient of Conv2D for its filter, whose shape is filter_sizes. Partial
// sums over images are added in a fixed order.
Output conv2d_backprop_filter(Output x, Output filter_sizes, Output dy,
    const Conv2DBackpropFilterOptions& options = {}, Site site = Site::here());

struct Conv2DBackpropInputOptions {
  std::vector<std::int64_t> strides = {1, 1};
  std::string padding = "SAME";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
  std::vector<std::int64_t> dilations = {1, 1};
  std::int64_t groups = 1;
};
// Conv2DBackpropInput: The gradient of Conv2D for its images, whose shape is x_sizes; also known as
// the transposed convolution of dy.
Output conv2d_backprop_input(Output x_sizes, Output filter, Output dy,
    const Conv2DBackpropInputOptions& options = {}, Site site = Site::here());

// Cos: y = cos(x), x in radians.
Output cos(Output x, Site site = Site::here());

// Cosh: y = (e^x + e^-x) / 2.
Output cosh(Output x, Site site = Site::here());

struct CumprodOptions {
  std::int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
};
// Cumprod: y[i] = x[0] * ... * x[i] along `axis`. The gradient is exact even with zeros. With
// `exclusive`, element i itself is left out; with `reverse`, from the end. Integers wrap around.
Output cumprod(Output x, const CumprodOptions& options = {}, Site site = Site::here());
template <Integer T>
Output cumprod(Output x, T axis, Flag exclusive = false, Flag reverse = false,
    Site site = Site::here()) {
  return cumprod(x, {.axis = axis, .exclusive = exclusive, .reverse = reverse}, std::move(site));
}

struct CumsumOptions {
  std::int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
};
// Cumsum: y[i] = x[0] + ... + x[i] along `axis`. With `exclusive`, element i itself is left out;
// with `reverse`, from the end. Integers wrap around.
Output cumsum(Output x, const CumsumOptions& options = {}, Site site = Site::here());
template <Integer T>
Output cumsum(Output x, T axis, Flag exclusive = false, Flag reverse = false,
    Site site = Site::here()) {
  return cumsum(x, {.axis = axis, .exclusive = exclusive, .reverse = reverse}, std::move(site));
}

struct DataPipelineOptions {
  std::vector<std::string> files = {};
  std::vector<std::string> functions = {};
  std::int64_t prefetch = 0;
  std::string container = "";
  std::string shared_name = "";
};
// DataPipeline: A handle to an input pipeline. `stages` lists sources and stages in postfix order:
// each stage takes the entries before it that are not taken yet (ops/data/examples.hpp). Sources
// use `files` and `tensors` (bytes) in order, stages the graph's `functions`. `prefetch` elements
// are made ahead.
Output data_pipeline(GraphBuilder& g, std::vector<std::string> stages, Tensor tensors,
    const DataPipelineOptions& options = {}, Site site = Site::here());

struct DatasetOptions {
  std::int64_t first = 0;
  std::int64_t digits_seed = 0;
  std::vector<std::string> files = {};
  std::int64_t batch = 1;
  std::int64_t shuffle = 0;
  std::int64_t seed = 0;
  std::int64_t repeat = 1;
  bool drop_remainder = false;
  std::int64_t prefetch = 0;
  std::int64_t limit = 0;
  std::string container = "";
  std::string shared_name = "";
};
// Dataset: A handle to an input pipeline of (image, label) pairs: from the IDX `files` (images,
// labels), or digits generated from `digits_seed`. It uses `limit` examples (0: all) starting at
// `first`, shuffled anew in each epoch through a window of `shuffle` examples (0: in order) with
// `seed`, and repeats them `repeat` times (-1: forever). `prefetch` elements are made ahead.
Output dataset(GraphBuilder& g, std::string source, std::vector<DType> types,
    std::vector<PartialShape> shapes, const DatasetOptions& options = {},
    Site site = Site::here());

struct DequeueOptions {
  std::vector<PartialShape> shapes = {};
};
// Dequeue: Takes the next tuple (of a FIFOQueue the oldest), which leaves the queue when this run
// commits. Waits while the queue is empty; out_of_range if it is closed and no more elements can
// arrive.
std::vector<Output> dequeue(Output handle, std::vector<DType> types,
    const DequeueOptions& options = {}, Site site = Site::here());

struct DequeueManyOptions {
  std::vector<PartialShape> shapes = {};
};
// DequeueMany: Takes `n` elements, stacked along a new dimension 0 (a PaddingFIFOQueue pads them);
// they leave the queue when this run commits. Waits until there are n elements, and later dequeues
// wait behind it; out_of_range if the queue is closed and has fewer, which then stay.
// invalid_argument if n exceeds the capacity or the queue's shapes are unknown. n = 0 gives an
// empty batch.
std::vector<Output> dequeue_many(Output handle, Output n, std::vector<DType> types,
    const DequeueManyOptions& options = {}, Site site = Site::here());

struct DequeueUpToOptions {
  std::vector<PartialShape> shapes = {};
};
// DequeueUpTo: Like DequeueMany, but returns the remaining elements of a closed queue that has
// fewer than `n`; out_of_range only if there are none.
std::vector<Output> dequeue_up_to(Output handle, Output n, std::vector<DType> types,
    const DequeueUpToOptions& options = {}, Site site = Site::here());

// Digamma: The derivative of Lgamma. At 0 it is an infinity of the opposite sign; at negative
// integers NaN.
Output digamma(Output x, Site site = Site::here());

// Div: y = a / b. Integers round towards zero; an integer b with a zero is an error. The inputs
// broadcast.
Output div(const Operand& a, const Operand& b, Site site = Site::here());

struct DotProductAttentionOptions {
  double scale = 1;
  bool causal = false;
  DType tstats = DType::f32;
};
struct DotProductAttentionOutputs {
  Output y;
  Output stats;
};
// DotProductAttention: y = softmax(scale q k^T) v over q [...,queries,size], k [...,keys,size] and
// v [...,keys,out]. causal: query i looks at keys 0 to i. stats are the logarithms of the sums that
// weights are divided by, of type Tstats: f64 for f64, else f32.
DotProductAttentionOutputs dot_product_attention(Output q, Output k, Output v,
    const DotProductAttentionOptions& options = {}, Site site = Site::here());

struct DotProductAttentionGradOptions {
  double scale = 1;
  bool causal = false;
};
struct DotProductAttentionGradOutputs {
  Output dq;
  Output dk;
  Output dv;
};
// DotProductAttentionGrad: The gradient of DotProductAttention, given its outputs.
DotProductAttentionGradOutputs dot_product_attention_grad(Output dy, Output q, Output k,
    Output v, Output y, Output stats, const DotProductAttentionGradOptions& options = {},
    Site site = Site::here());

// DynamicPartition: N tensors: parts[p] are the slices data[i, j, ...] with partitions[i, j] = p,
// in their order: [count, ...]. The shape of partitions begins that of data. A part outside [0, N)
// is an error.
std::vector<Output> dynamic_partition(Output data, Output partitions, std::int64_t n,
    Site site = Site::here());

// DynamicStitch: y[indices[l][i, j], ...] = data[l][i, j, ...] for each list l: [places, ...], one
// more than the largest index. Of slices with one index the last one stays, and places that no
// index names are 0, or empty strings. The shape of indices begins that of their data. A negative
// index is an error.
Output dynamic_stitch(const std::vector<Output>& indices, const std::vector<Output>& data,
    Site site = Site::here());

// DynamicStitchGrad: The slices of dy at the indices of each list, and 0 for those that
// DynamicStitch did not keep: its gradient for data.
std::vector<Output> dynamic_stitch_grad(Output dy, const std::vector<Output>& indices,
    Site site = Site::here());

// Elu: y = x if x >= 0, else e^x - 1.
Output elu(Output x, Site site = Site::here());

// EluGrad: The gradient of Elu, given its output y.
Output elu_grad(Output dy, Output y, Site site = Site::here());

// Enqueue: Appends one tuple, which other runs see when this run commits. Waits while the queue is
// full; cancelled once it is closed.
Op enqueue(Output handle, const std::vector<Output>& values, Site site = Site::here());

// EnqueueMany: Appends the rows of `values` (dimension 0) as elements, in order and all at once:
// waits until there is room for all of them. invalid_argument for more rows than the queue's
// capacity; zero rows do nothing. Otherwise like Enqueue.
Op enqueue_many(Output handle, const std::vector<Output>& values, Site site = Site::here());

// EnsureSameShape: y = x; fails the run if the shapes of x and like differ, even if one could be
// broadcast to the other. Shape inference gives y the shape of like. No gradient flows to like.
Output ensure_same_shape(Output x, Output like, Site site = Site::here());

// EnsureShape: y = x; fails the run if x does not have the shape `shape`, in which dimensions may
// be unknown. Shape inference gives y this shape.
Output ensure_shape(Output x, PartialShape shape, Site site = Site::here());

// Equal: y = a == b; a NaN equals nothing. The inputs broadcast.
Output equal(const Operand& a, const Operand& b, Site site = Site::here());

// Erf: The error function.
Output erf(Output x, Site site = Site::here());

// ErfGrad: dx = dy * 2 / sqrt(pi) * exp(-x^2): the gradient of Erf.
Output erf_grad(Output dy, Output x, Site site = Site::here());

// EuclideanNorm: sqrt(sum(x^2)) over all elements, summed in f64 in a fixed order; the squares do
// not overflow. The gradient is 0 where the norm is 0.
Output euclidean_norm(Output x, Site site = Site::here());

// Exp: y = e^x.
Output exp(Output x, Site site = Site::here());

// ExpandDims: x with a new dimension of size 1 at position `axis` of the result; a negative axis
// counts from the end.
Output expand_dims(Output x, std::int64_t axis, Site site = Site::here());

// Expm1: y = exp(x) - 1, accurate for small x.
Output expm1(Output x, Site site = Site::here());

struct FFTOptions {
  std::string norm = "backward";  // backward, ortho, forward
};
// FFT: The discrete Fourier transform over the last dimension: y[k] = sum over j of x[j] e^(-2 pi i
// j k / n). Dimensions may have any size. norm: which direction is divided by n, the number of
// elements of a transform, or both by its square root (ortho).
Output fft(Output x, const FFTOptions& options = {}, Site site = Site::here());

struct FFT2DOptions {
  std::string norm = "backward";  // backward, ortho, forward
};
// FFT2D: The discrete Fourier transform over the last 2 dimensions: y[k] = sum over j of x[j] e^(-2
// pi i j k / n), along each. Dimensions may have any size. norm: which direction is divided by n,
// the number of elements of a transform, or both by its square root (ortho).
Output fft2d(Output x, const FFT2DOptions& options = {}, Site site = Site::here());

struct FFT3DOptions {
  std::string norm = "backward";  // backward, ortho, forward
};
// FFT3D: The discrete Fourier transform over the last 3 dimensions: y[k] = sum over j of x[j] e^(-2
// pi i j k / n), along each. Dimensions may have any size. norm: which direction is divided by n,
// the number of elements of a transform, or both by its square root (ortho).
Output fft3d(Output x, const FFT3DOptions& options = {}, Site site = Site::here());

struct FIFOQueueOptions {
  std::vector<PartialShape> shapes = {};
  std::int64_t capacity = 32;
  std::string container = "";
  std::string shared_name = "";
};
// FIFOQueue: A handle to a bounded first-in-first-out queue of tuples with the dtypes `types` and,
// if given, the shapes `shapes`. It is named like a Variable.
Output fifo_queue(GraphBuilder& g, std::vector<DType> types,
    const FIFOQueueOptions& options = {}, Site site = Site::here());

// Fill: A tensor of shape `dims` (a vector), filled with the scalar `value`.
Output fill(Output dims, Output value, Site site = Site::here());

// Floor: The largest integer not above x.
Output floor(Output x, Site site = Site::here());

// FloorDiv: y = floor(a / b). An integer b with a zero is an error. The inputs broadcast.
Output floor_div(const Operand& a, const Operand& b, Site site = Site::here());

struct FusedBatchNormOptions {
  double epsilon = 0.001;
  bool is_training = true;
};
struct FusedBatchNormOutputs {
  Output y;
  Output batch_mean;
  Output batch_variance;
  Output inv_std;
};
// FusedBatchNorm: y = (x - m) / sqrt(v + epsilon) * scale + offset per channel, the last dimension
// of x. In training, m and v are the mean and variance of x, and the inputs mean and variance are
// not read; batch_variance is the unbiased one, for moving averages. Otherwise, and if x has no
// rows, m and v are those inputs, to which no gradient flows.
FusedBatchNormOutputs fused_batch_norm(Output x, Output scale, Output offset, Output mean,
    Output variance, const FusedBatchNormOptions& options = {}, Site site = Site::here());

struct FusedBatchNormGradOptions {
  bool is_training = true;
};
struct FusedBatchNormGradOutputs {
  Output dx;
  Output dscale;
  Output doffset;
};
// FusedBatchNormGrad: The gradient of FusedBatchNorm, given its outputs mean and inv_std and the
// gradients of all its outputs.
FusedBatchNormGradOutputs fused_batch_norm_grad(Output dy, Output x, Output scale, Output mean,
    Output inv_std, Output dmean, Output dvariance, Output dinv_std,
    const FusedBatchNormGradOptions& options = {}, Site site = Site::here());

struct GatherOptions {
  std::int64_t axis = 0;
};
// Gather: y[i, j, ...] = params[indices[i, j], ...]: slices along dimension 0, or along `axis`:
// y[..., i, j, ...] = params[..., indices[i, j], ...]. An index out of range is an error.
Output gather(Output params, Output indices, const GatherOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output gather(Output params, Output indices, T axis, Site site = Site::here()) {
  return gather(params, indices, {.axis = axis}, std::move(site));
}

struct GatherAddOptions {
  std::int64_t axis = 0;
};
// GatherAdd: sums (of `shape`) with the slices of dy added where `indices` took them from: sums +
// GatherGrad(...).
Output gather_add(Output sums, Output dy, Output indices, Output shape,
    const GatherAddOptions& options = {}, Site site = Site::here());

struct GatherGradOptions {
  std::int64_t axis = 0;
};
// GatherGrad: The slices of dy added to zeros of `shape` where `indices` took them from along
// `axis`: the gradient of Gather.
Output gather_grad(Output dy, Output indices, Output shape,
    const GatherGradOptions& options = {}, Site site = Site::here());

// GatherNd: y[i, j, ...] = params[indices[i, j, 0], indices[i, j, 1], ..., ...]: each entry of the
// last dimension of indices is an index into one of the first dimensions of params. An index out of
// range is an error.
Output gather_nd(Output params, Output indices, Site site = Site::here());

// Gelu: y = x Phi(x), where Phi(x) is the part of normally distributed numbers below x (Hendrycks
// and Gimpel, 2016).
Output gelu(Output x, Site site = Site::here());

// GeluGrad: dx = dy * (Phi(x) + x * phi(x)): the gradient of Gelu, where phi is the density of
// normally distributed numbers.
Output gelu_grad(Output dy, Output x, Site site = Site::here());

// GeluTanh: y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))): nearly Gelu (Hendrycks and
// Gimpel, 2016).
Output gelu_tanh(Output x, Site site = Site::here());

// GeluTanhGrad: dx = dy times the slope of GeluTanh at x.
Output gelu_tanh_grad(Output dy, Output x, Site site = Site::here());

// Greater: y = a > b; false if one is NaN. The inputs broadcast.
Output greater(const Operand& a, const Operand& b, Site site = Site::here());

// GreaterEqual: y = a >= b; false if one is NaN. The inputs broadcast.
Output greater_equal(const Operand& a, const Operand& b, Site site = Site::here());

struct GroupNormOptions {
  double epsilon = 1e-05;
};
// GroupNorm: y = (x - m) / sqrt(v + epsilon) * scale + offset of x [n, ..., c], where m and v are
// the mean and variance of each of `groups` equal parts of the channels of an example, over all
// positions; scale and offset are [c] (Wu and He, 2018).
Output group_norm(Output x, Output scale, Output offset, std::int64_t groups,
    const GroupNormOptions& options = {}, Site site = Site::here());

struct GroupNormGradOptions {
  double epsilon = 1e-05;
};
struct GroupNormGradOutputs {
  Output dx;
  Output dscale;
  Output doffset;
};
// GroupNormGrad: The gradients of GroupNorm, given the gradient of its output.
GroupNormGradOutputs group_norm_grad(Output dy, Output x, Output scale, std::int64_t groups,
    const GroupNormGradOptions& options = {}, Site site = Site::here());

// HistogramSummary: A serialized Summary protocol buffer with the distribution of all elements of
// x: minimum, maximum, number, sum, sum of squares, and TensorFlow's buckets, each 10 % wider than
// the one before. Fails the run for NaN and infinities, naming the tag and the first such element.
// An empty x gives an empty histogram.
Output histogram_summary(Output x, std::string tag, Site site = Site::here());

// Huber: Of the difference d = a - b: y = d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).
// The inputs broadcast.
Output huber(const Operand& a, const Operand& b, const Operand& delta, Site site = Site::here());

struct IFFTOptions {
  std::string norm = "backward";  // backward, ortho, forward
};
// IFFT: The inverse of FFT: over the last dimension, y[k] = sum over j of x[j] e^(2 pi i j k / n),
// divided by n. norm: which direction is divided by n, the number of elements of a transform, or
// both by its square root (ortho).
Output ifft(Output x, const IFFTOptions& options = {}, Site site = Site::here());

struct IFFT2DOptions {
  std::string norm = "backward";  // backward, ortho, forward
};
// IFFT2D: The inverse of FFT2D: over the last 2 dimensions, y[k] = sum over j of x[j] e^(2 pi i j k
// / n), divided by n, along each. norm: which direction is divided by n, the number of elements of
// a transform, or both by its square root (ortho).
Output ifft2d(Output x, const IFFT2DOptions& options = {}, Site site = Site::here());

struct IFFT3DOptions {
  std::string norm = "backward";  // backward, ortho, forward
};
// IFFT3D: The inverse of FFT3D: over the last 3 dimensions, y[k] = sum over j of x[j] e^(2 pi i j k
// / n), divided by n, along each. norm: which direction is divided by n, the number of elements of
// a transform, or both by its square root (ortho).
Output ifft3d(Output x, const IFFT3DOptions& options = {}, Site site = Site::here());

struct IRFFTOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// IRFFT: The inverse of RFFT, over the last dimension: x has the first n / 2 + 1 elements of the
// last one. fft_length: n of each dimension, to which x is cut off or filled up with zeros; if the
// list is empty, the dimensions of x, but 2 (d - 1) for the last one, d. Imaginary parts that a
// transform of real numbers does not have are not read. norm: as FFT has it.
Output irfft(Output x, const IRFFTOptions& options = {}, Site site = Site::here());

struct IRFFT2DOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// IRFFT2D: The inverse of RFFT2D, over the last 2 dimensions: x has the first n / 2 + 1 elements of
// the last one. fft_length: n of each dimension, to which x is cut off or filled up with zeros; if
// the list is empty, the dimensions of x, but 2 (d - 1) for the last one, d. Imaginary parts that a
// transform of real numbers does not have are not read. norm: as FFT2D has it.
Output irfft2d(Output x, const IRFFT2DOptions& options = {}, Site site = Site::here());

struct IRFFT2DGradOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// IRFFT2DGrad: The gradient of IRFFT2D for an x of `shape`.
Output irfft2d_grad(Output dy, Output shape, const IRFFT2DGradOptions& options = {},
    Site site = Site::here());

struct IRFFT3DOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// IRFFT3D: The inverse of RFFT3D, over the last 3 dimensions: x has the first n / 2 + 1 elements of
// the last one. fft_length: n of each dimension, to which x is cut off or filled up with zeros; if
// the list is empty, the dimensions of x, but 2 (d - 1) for the last one, d. Imaginary parts that a
// transform of real numbers does not have are not read. norm: as FFT3D has it.
Output irfft3d(Output x, const IRFFT3DOptions& options = {}, Site site = Site::here());

struct IRFFT3DGradOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// IRFFT3DGrad: The gradient of IRFFT3D for an x of `shape`.
Output irfft3d_grad(Output dy, Output shape, const IRFFT3DGradOptions& options = {},
    Site site = Site::here());

struct IRFFTGradOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// IRFFTGrad: The gradient of IRFFT for an x of `shape`.
Output irfft_grad(Output dy, Output shape, const IRFFTGradOptions& options = {},
    Site site = Site::here());

// Identity: y = x.
Output identity(Output x, Site site = Site::here());

// Imag: The imaginary part of z.
Output imag(Output z, Site site = Site::here());

struct ImageSummaryOptions {
  std::int64_t max_outputs = 3;
  std::vector<std::int64_t> bad_color = {255, 0, 0, 255};
};
// ImageSummary: A serialized Summary protocol buffer with the first `max_outputs` images of x,
// [batch,height,width,channels], as PNG: gray, RGB or RGBA. The tags are tag/image/0,
// tag/image/1..., or tag/image if max_outputs is 1. u8 values are used unchanged. Floats are scaled
// for each image: from [0,max] to [0,255], or, if any is negative, so that 0 becomes 128 and the
// largest absolute value 255 or 1. Pixels with a NaN or an infinity get `bad_color`.
Output image_summary(Output x, std::string tag, const ImageSummaryOptions& options = {},
    Site site = Site::here());

// InTopK: y[i] is true if fewer than k elements of predictions[i] exceed predictions[i,
// targets[i]], so ties at the boundary are included. False for a row with an infinity or a NaN, as
// in TensorFlow; a target out of range is an error.
Output in_top_k(Output predictions, Output targets, std::int64_t k, Site site = Site::here());

// Invert: The complement of x.
Output invert(Output x, Site site = Site::here());

// IsFinite: True where x is neither infinite nor NaN.
Output is_finite(Output x, Site site = Site::here());

// IsInf: True where x is infinite, of either sign.
Output is_inf(Output x, Site site = Site::here());

// IsNan: True where x is not a number.
Output is_nan(Output x, Site site = Site::here());

// IsVariableInitialized: Whether the variable has a value as of the run's snapshot.
Output is_variable_initialized(Output handle, Site site = Site::here());

// L2Loss: sum(x^2) / 2 over all elements, summed in a fixed order.
Output l2_loss(Output x, Site site = Site::here());

struct LayerNormOptions {
  double epsilon = 1e-05;
};
// LayerNorm: y = (x - m) / sqrt(v + epsilon) * scale + offset, where m and v are the mean and
// variance of each row (the last dimension of x); scale and offset are rows, too.
Output layer_norm(Output x, Output scale, Output offset, const LayerNormOptions& options = {},
    Site site = Site::here());

struct LayerNormGradOptions {
  double epsilon = 1e-05;
};
struct LayerNormGradOutputs {
  Output dx;
  Output dscale;
  Output doffset;
};
// LayerNormGrad: The gradients of LayerNorm, given the gradient of its output.
LayerNormGradOutputs layer_norm_grad(Output dy, Output x, Output scale,
    const LayerNormGradOptions& options = {}, Site site = Site::here());

// LeakyRelu: y = x if x > 0, else slope * x. The inputs broadcast: with a slope for each channel,
// which may be learned, this is PReLU.
Output leaky_relu(const Operand& x, const Operand& slope, Site site = Site::here());

// LeakyReluGrad: dx = dy if x > 0, else slope * dy, in the broadcast shape of x and slope (dy's).
Output leaky_relu_grad(Output dy, Output x, Output slope, Site site = Site::here());

// LeftShift: x shifted left by `bits`, filled with zeros. 0 if `bits` is negative or at least the
// width of the type. The inputs broadcast.
Output left_shift(const Operand& x, const Operand& bits, Site site = Site::here());

// Less: y = a < b; false if one is NaN. The inputs broadcast.
Output less(const Operand& a, const Operand& b, Site site = Site::here());

// LessEqual: y = a <= b; false if one is NaN. The inputs broadcast.
Output less_equal(const Operand& a, const Operand& b, Site site = Site::here());

// Lgamma: The logarithm of the absolute value of the gamma function; inf at 0 and at negative
// integers.
Output lgamma(Output x, Site site = Site::here());

struct LinearRecurrenceOptions {
  std::int64_t axis = 0;
  bool reverse = false;
  bool behind = false;
};
// LinearRecurrence: y[i] = a[i] * y[i - 1] + b[i] along `axis`, starting from 0; with `reverse`
// from the end. With `behind`, the factor is a[i - 1]. A factor of 0 restarts with b[i], even after
// an infinity or NaN. Used by the gradient of Cumprod.
Output linear_recurrence(Output a, Output b, const LinearRecurrenceOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output linear_recurrence(Output a, Output b, T axis, Flag reverse = false, Flag behind = false,
    Site site = Site::here()) {
  return linear_recurrence(a, b, {.axis = axis, .reverse = reverse, .behind = behind},
    std::move(site));
}

// ListAddN: The elementwise sums of one or more lists of equal length, added from left to right;
// f16 and bf16 are summed in f32 and rounded once.
Output list_add_n(const std::vector<Output>& values, Site site = Site::here());

struct ListEmptyOptions {
  PartialShape shape = PartialShape();
};
// ListEmpty: An empty list, for elements of type T with shapes that `shape` accepts.
Output list_empty(GraphBuilder& g, DType dtype, const ListEmptyOptions& options = {},
    Site site = Site::here());

struct ListGetOptions {
  PartialShape shape = PartialShape();
};
// ListGet: The element at `index`, of type T and with a shape that `shape` accepts. An index out of
// range is an error.
Output list_get(Output list, Output index, DType dtype, const ListGetOptions& options = {},
    Site site = Site::here());

// ListGetAdd: sums with dy added to its element at `index`: sums + ListGetGrad(...).
Output list_get_add(Output sums, Output dy, Output index, Output like, Site site = Site::here());

// ListGetGrad: Zeros like the elements of `like`, except dy at `index`: the gradient of ListGet.
Output list_get_grad(Output dy, Output index, Output like, Site site = Site::here());

// ListLength: The number of elements.
Output list_length(Output list, Site site = Site::here());

struct ListPopOptions {
  PartialShape shape = PartialShape();
};
struct ListPopOutputs {
  Output rest;
  Output value;
};
// ListPop: The list without its last element, and that element, which has type T and a shape that
// `shape` accepts.
ListPopOutputs list_pop(Output list, DType dtype, const ListPopOptions& options = {},
    Site site = Site::here());

// ListPush: The list with `value` appended. No element is copied.
Output list_push(Output before, Output value, Site site = Site::here());

// ListSet: The list with the element at `index` replaced by `value`; `value` is appended if `index`
// is the length. Any other index is an error.
Output list_set(Output before, Output index, Output value, Site site = Site::here());

struct ListSetGradOptions {
  PartialShape shape = PartialShape();
};
struct ListSetGradOutputs {
  Output dbefore;
  Output dvalue;
};
// ListSetGrad: dlist with zeros in the form of the element of `before` at `index`, and what was
// there: the gradient of ListSet.
ListSetGradOutputs list_set_grad(Output dlist, Output index, Output before, DType dtype,
    const ListSetGradOptions& options = {}, Site site = Site::here());

struct ListStackOptions {
  PartialShape shape = PartialShape();
  std::int64_t length = -1;
};
// ListStack: The elements of the list, all of type T and of one shape, stacked along a new first
// dimension; their number must be `length` unless that is negative. For an empty list, the list or
// `shape` must define the shape of elements.
Output list_stack(Output list, DType dtype, const ListStackOptions& options = {},
    Site site = Site::here());

// ListUnstack: A list of the slices of x along its first dimension, which share its memory.
Output list_unstack(Output x, Site site = Site::here());

// ListUnstackGrad: The elements of the list stacked into a tensor of that shape: the gradient of
// ListUnstack.
Output list_unstack_grad(Output dlist, Output shape, DType dtype, Site site = Site::here());

// ListZerosLike: A list of zeros like the elements. The zeros take no memory.
Output list_zeros_like(Output list, Site site = Site::here());

// Log: The natural logarithm of x; -inf at 0, NaN below. Of a complex x its principal value, whose
// imaginary part is the angle of x.
Output log(Output x, Site site = Site::here());

// Log1p: y = log(1 + x), accurate for small x.
Output log1p(Output x, Site site = Site::here());

struct LogMatrixDeterminantOutputs {
  Output sign;
  Output log_abs;
};
// LogMatrixDeterminant: The sign (1, 0 or -1) of the determinants of square matrices and the
// logarithm of their absolute value, which neither overflows nor underflows; 0 and -inf for a
// singular matrix. The gradient of log_abs is the transposed inverse.
LogMatrixDeterminantOutputs log_matrix_determinant(Output x, Site site = Site::here());

// LogSoftmax: y = logits - log(sum(e^logits)) over the last dimension, without overflow.
Output log_softmax(Output logits, Site site = Site::here());

// LogSoftmaxGrad: The gradient of LogSoftmax, given its output y.
Output log_softmax_grad(Output dy, Output y, Site site = Site::here());

struct LogUniformCandidateSamplerOptions {
  DType tcount = DType::f32;
  bool unique = true;
};
struct LogUniformCandidateSamplerOutputs {
  Output sampled;
  Output true_expected;
  Output sampled_expected;
};
// LogUniformCandidateSampler: n classes of [0, range_max), class c with the probability log((c + 2)
// / (c + 1)) / log(range_max + 1), which fits words in descending order of their frequency, and how
// often each of true_classes and of those drawn is drawn on average: with `unique`, where no class
// is drawn twice, the probability that it is among as many draws as that took. A true class outside
// is an error. New values in each run, the same for the same seed, node name and run.
LogUniformCandidateSamplerOutputs log_uniform_candidate_sampler(Output true_classes,
    std::int64_t n, std::int64_t range_max,
    const LogUniformCandidateSamplerOptions& options = {}, Site site = Site::here());

// LogicalAnd: y = a and b. The inputs broadcast.
Output logical_and(const Operand& a, const Operand& b, Site site = Site::here());

// LogicalNot: y = not x.
Output logical_not(Output x, Site site = Site::here());

// LogicalOr: y = a or b. The inputs broadcast.
Output logical_or(const Operand& a, const Operand& b, Site site = Site::here());

struct LstmCellOutputs {
  Output h;
  Output next;
  Output gates;
};
// LstmCell: One step of an LSTM with state c [batch,hidden]. The quarters of x + r [batch,4 hidden]
// are the inputs of the gates i, f, g and o: tanh for g, sigmoid for the others. next = f c + i g,
// h = o tanh(next).
LstmCellOutputs lstm_cell(Output x, Output r, Output c, Site site = Site::here());

struct LstmCellGradOutputs {
  Output slopes;
  Output dc;
};
// LstmCellGrad: The gradient of LstmCell, given its outputs gates and next: for x (equal to that
// for r) and for c.
LstmCellGradOutputs lstm_cell_grad(Output dh, Output dnext, Output gates, Output c, Output next,
    Site site = Site::here());

struct LstmSequenceOutputs {
  Output h;
  Output next;
  Output gates;
};
// LstmSequence: LstmCell over the steps of x [steps,batch,4 hidden], starting from h0 and c0
// [batch,hidden]: in each step the cell's r is the previous h times r [hidden,4 hidden]. The
// outputs hold all steps. steps = -1 means all that x has.
LstmSequenceOutputs lstm_sequence(Output x, Output h0, Output c0, Output r, std::int64_t steps,
    Site site = Site::here());

struct LstmSequenceGradOutputs {
  Output dx;
  Output dh0;
  Output dc0;
  Output dr;
};
// LstmSequenceGrad: The gradient of LstmSequence, given its outputs.
LstmSequenceGradOutputs lstm_sequence_grad(Output dh, Output dnext, Output gates, Output h,
    Output next, Output h0, Output c0, Output r, std::int64_t steps, Site site = Site::here());

struct MaskedDotProductAttentionOptions {
  double scale = 1;
  bool causal = false;
  DType tstats = DType::f32;
};
struct MaskedDotProductAttentionOutputs {
  Output y;
  Output stats;
};
// MaskedDotProductAttention: DotProductAttention where the mask, which broadcasts to
// [...,queries,keys], is true. A query that may not look at any key has zeros, stats of 0, and no
// gradient.
MaskedDotProductAttentionOutputs masked_dot_product_attention(Output q, Output k, Output v,
    Output mask, const MaskedDotProductAttentionOptions& options = {}, Site site = Site::here());

struct MaskedDotProductAttentionGradOptions {
  double scale = 1;
  bool causal = false;
};
struct MaskedDotProductAttentionGradOutputs {
  Output dq;
  Output dk;
  Output dv;
};
// MaskedDotProductAttentionGrad: The gradient of MaskedDotProductAttention, given its outputs.
MaskedDotProductAttentionGradOutputs masked_dot_product_attention_grad(Output dy, Output q,
    Output k, Output v, Output y, Output stats, Output mask,
    const MaskedDotProductAttentionGradOptions& options = {}, Site site = Site::here());

struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
// MatMul: The matrix product of a [m,k] and b [k,n]; transpose_a and transpose_b state that an
// operand is stored transposed. k = 0 gives zeros. f16 and bf16 are summed in f32 and rounded once;
// on AVX-512, subnormal elements and sums of bf16 count as 0. Integers wrap around.
Output mat_mul(Output a, Output b, const MatMulOptions& options = {}, Site site = Site::here());

// MatrixBandPart: Each matrix in the last two dimensions of x with zeros (false) outside a band:
// `lower` diagonals below the main one and `upper` above it are kept, all of them if negative. (-1,
// 0) gives the lower triangle.
Output matrix_band_part(Output x, std::int64_t lower, std::int64_t upper,
    Site site = Site::here());

// MatrixDeterminant: The determinants of square matrices: [..., n, n] gives [...]. That of a 0 x 0
// matrix is 1. The gradient needs the inverse, so for a singular matrix it is an error.
Output matrix_determinant(Output x, Site site = Site::here());

// MatrixDiag: Square matrices with the last dimension of x on the diagonal and zeros (false)
// elsewhere: [..., n] gives [..., n, n].
Output matrix_diag(Output x, Site site = Site::here());

// MatrixDiagPart: The diagonals of matrices: [..., m, n] gives [..., min(m, n)].
Output matrix_diag_part(Output x, Site site = Site::here());

// MatrixDiagPartGrad: The gradient of MatrixDiagPart: zeros in the shape of x, with dy on the
// diagonals.
Output matrix_diag_part_grad(Output dy, Output x, Site site = Site::here());

// MatrixInverse: The inverses of square matrices [..., n, n]. A singular matrix is an error; one
// with non-finite elements gives NaN.
Output matrix_inverse(Output x, Site site = Site::here());

struct MatrixSolveOptions {
  bool adjoint = false;
};
// MatrixSolve: Solves a x = b, or with `adjoint` a^T x = b, for matrices a [..., n, n] and b [...,
// n, k] with equal batch dimensions. A singular a is an error; one with non-finite elements gives
// NaN.
Output matrix_solve(Output a, Output b, const MatrixSolveOptions& options = {},
    Site site = Site::here());

struct MatrixSolveLsOptions {
  double l2_regularizer = 0;
};
// MatrixSolveLs: The x that minimizes |a x - b|^2 + l2_regularizer |x|^2, column by column, for
// matrices a [..., m, n] and b [..., m, k] with equal batch dimensions; if a x = b has many
// solutions because m < n, the shortest. Computed in f64. An a without full rank is an error unless
// l2_regularizer is positive; one with non-finite elements gives NaN.
Output matrix_solve_ls(Output a, Output b, const MatrixSolveLsOptions& options = {},
    Site site = Site::here());

// MatrixTranspose: x with its last two dimensions exchanged: [..., m, n] gives [..., n, m]. The
// rank may be unknown when the graph is built.
Output matrix_transpose(Output x, Site site = Site::here());

struct MatrixTriangularSolveOptions {
  bool lower = true;
  bool adjoint = false;
};
// MatrixTriangularSolve: MatrixSolve for a lower (or upper) triangular a; elements on the other
// side of the diagonal are not read. A 0 on the diagonal is an error.
Output matrix_triangular_solve(Output a, Output b,
    const MatrixTriangularSolveOptions& options = {}, Site site = Site::here());

struct MaxOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Max: The maximum; NaN if any element is NaN. For an empty input it is -inf, or the lowest
// integer. Equal maxima share the gradient equally. Reduces the dimensions `axes`, or all if the
// list is empty; keep_dims keeps them with size 1.
Output max(Output x, const MaxOptions& options = {}, Site site = Site::here());
template <class = void>
Output max(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return max(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

struct MaxPoolOptions {
  std::string padding = "VALID";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
};
// MaxPool: The largest element of each window over height and width of x [n,h,w,c]; ksize and
// strides are [h,w] or [1,h,w,1]; explicit_paddings, with padding EXPLICIT, are
// [top,bottom,left,right]. Padding is ignored; a NaN is the largest.
Output max_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    const MaxPoolOptions& options = {}, Site site = Site::here());
template <class = void>
Output max_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    std::string padding, std::vector<std::int64_t> explicit_paddings = {},
    Site site = Site::here()) {
  return max_pool(x, ksize, strides, {.padding = padding,
    .explicit_paddings = explicit_paddings}, std::move(site));
}

struct MaxPoolGradOptions {
  std::string padding = "VALID";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
};
// MaxPoolGrad: The gradient of MaxPool, given its input x and output y. Of equal maxima, the first
// in window order, row by row, gets all of dy.
Output max_pool_grad(Output x, Output y, Output dy, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const MaxPoolGradOptions& options = {},
    Site site = Site::here());

struct MaxPoolPickOptions {
  std::string padding = "VALID";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
};
// MaxPoolPick: For each window of MaxPool with input x and output y, the element of d at the
// position of the first maximum of x: the gradient of MaxPoolGrad for dy.
Output max_pool_pick(Output x, Output y, Output d, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const MaxPoolPickOptions& options = {},
    Site site = Site::here());
template <class = void>
Output max_pool_pick(Output x, Output y, Output d, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, std::string padding,
    std::vector<std::int64_t> explicit_paddings = {}, Site site = Site::here()) {
  return max_pool_pick(x, y, d, ksize, strides, {.padding = padding,
    .explicit_paddings = explicit_paddings}, std::move(site));
}

// Maximum: The larger of a and b; NaN if one is NaN. If they are equal, each gets half of the
// gradient. The inputs broadcast.
Output maximum(const Operand& a, const Operand& b, Site site = Site::here());

struct MeanOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Mean: The mean; NaN for an empty input. Reduces the dimensions `axes`, or all if the list is
// empty; keep_dims keeps them with size 1.
Output mean(Output x, const MeanOptions& options = {}, Site site = Site::here());
template <class = void>
Output mean(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return mean(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// MergeSummary: One serialized Summary protocol buffer with all values of the inputs, which may
// have any shape. Fails the run if an element is not a valid Summary, or if two values have the
// same tag.
Output merge_summary(const std::vector<Output>& summaries, Site site = Site::here());

struct MinOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Min: The minimum; NaN if any element is NaN. For an empty input it is inf, or the highest
// integer. Equal minima share the gradient equally. Reduces the dimensions `axes`, or all if the
// list is empty; keep_dims keeps them with size 1.
Output min(Output x, const MinOptions& options = {}, Site site = Site::here());
template <class = void>
Output min(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return min(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// Minimum: The smaller of a and b; NaN if one is NaN. If they are equal, each gets half of the
// gradient. The inputs broadcast.
Output minimum(const Operand& a, const Operand& b, Site site = Site::here());

// Mod: y = a - b * floor(a / b), which has the sign of b. An integer b with a zero is an error. The
// inputs broadcast.
Output mod(const Operand& a, const Operand& b, Site site = Site::here());

// MoveAverages: A node of training steps: training_only writes that come before it, or are in
// functions run by nodes before it, are part of the step, too.
Op move_averages(GraphBuilder& g, Site site = Site::here());

// Mul: y = a * b. Integers wrap around. The inputs broadcast.
Output mul(const Operand& a, const Operand& b, Site site = Site::here());

struct MutexOptions {
  std::string container = "";
  std::string shared_name = "";
};
// Mutex: A handle to a mutex, which one run at a time holds. It is named like a Variable. It has no
// contents: checkpoints leave it out.
Output mutex(GraphBuilder& g, const MutexOptions& options = {}, Site site = Site::here());

// MutexAcquire: Acquires the mutex for this run. Before a run begins, it takes all mutexes that its
// nodes may acquire, including those in branches. It waits for them in the order in which runs
// arrive, until its deadline, and reads variables as they are after the wait. So mutexes cause no
// deadlock, and runs that hold the same mutex are not repeated because of each other. The mutex is
// released when the run ends, whatever its result. failed_precondition if the run has already
// acquired it and not released it.
Op mutex_acquire(Output handle, Site site = Site::here());

// MutexRelease: Ends MutexAcquire, so that the run may acquire the mutex again. Other runs get the
// mutex, and see the writes of this run, only when this run ends. failed_precondition if the run
// has not acquired the mutex.
Op mutex_release(Output handle, Site site = Site::here());

// Neg: y = -x. Integers wrap around.
Output neg(Output x, Site site = Site::here());

// NextElement: The dataset element assigned to this run and replica; out_of_range past the end. In
// a loop, each time the next element.
std::vector<Output> next_element(Output handle, std::vector<PartialShape> shapes,
    std::vector<DType> types, Site site = Site::here());

// NoOp: Does nothing; it takes and gives control edges.
Op no_op(GraphBuilder& g, Site site = Site::here());

// NotEqual: y = a != b; a NaN differs from everything. The inputs broadcast.
Output not_equal(const Operand& a, const Operand& b, Site site = Site::here());

struct OneHotOptions {
  DType dtype = DType::f32;
  double on = 1;
  double off = 0;
};
// OneHot: Adds a last dimension of size `depth`: `on` at the index, `off` elsewhere. An index out
// of range gives `off` everywhere.
Output one_hot(Output indices, std::int64_t depth, const OneHotOptions& options = {},
    Site site = Site::here());

// OnesLike: Ones (true) with the shape and type of x.
Output ones_like(Output x, Site site = Site::here());

struct PackOptions {
  std::int64_t axis = 0;
};
// Pack: The values, all of the same shape, stacked along a new dimension `axis`.
Output pack(const std::vector<Output>& values, const PackOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output pack(const std::vector<Output>& values, T axis, Site site = Site::here()) {
  return pack(values, {.axis = axis}, std::move(site));
}

struct PadOptions {
  double value = 0;
};
// Pad: x padded with `value`. `paddings` lists the amounts before and after each dimension:
// [before0, after0, before1, after1, ...].
Output pad(Output x, std::vector<std::int64_t> paddings, const PadOptions& options = {},
    Site site = Site::here());

struct PaddingFIFOQueueOptions {
  std::int64_t capacity = 32;
  std::string container = "";
  std::string shared_name = "";
};
// PaddingFIFOQueue: A FIFOQueue whose elements may differ in the dimensions that `shapes` leaves
// unknown; their ranks are known. DequeueMany and DequeueUpTo pad each component at the end of each
// dimension to the largest size in the batch, with zeros or empty strings.
Output padding_fifo_queue(GraphBuilder& g, std::vector<DType> types,
    std::vector<PartialShape> shapes, const PaddingFIFOQueueOptions& options = {},
    Site site = Site::here());

struct PartitionRowsOptions {
  std::string how = "mod";  // mod, div
};
struct PartitionRowsOutputs {
  Output part;
  Output row;
};
// PartitionRows: In which of `shards` parts of a table of `rows` rows each of the ids is, and as
// which row of it. mod: row i is in part i mod shards. div: the first part has the first rows, the
// next part the rows behind those. Either way the first rows mod shards parts have a row more than
// the others. An id outside [0, rows) is an error.
PartitionRowsOutputs partition_rows(Output ids, std::int64_t rows, std::int64_t shards,
    const PartitionRowsOptions& options = {}, Site site = Site::here());

// Polygamma: The n-th derivative of Digamma, n from 0 to 100. At 0 and at negative integers it is
// inf for an odd n, else NaN.
Output polygamma(Output x, std::int64_t n, Site site = Site::here());

// Pow: y = a^b. For integers b must not be negative. The gradient with respect to b is 0 where a <=
// 0. Of complex numbers it is the principal value, exp(b log a): 1 where b is 0; where a is 0, else
// 0 if the real part of b is positive, NaN if not. The inputs broadcast.
Output pow(const Operand& a, const Operand& b, Site site = Site::here());

// PowGradBase: da = dy * b * a^(b-1), 0 where b is 0, in the broadcast shape of a and b (dy's).
Output pow_grad_base(Output dy, Output a, Output b, Site site = Site::here());

// PowGradExponent: db = dy * y * log(a), 0 where a <= 0 (if complex: is 0), in the broadcast shape
// of a and b (dy's).
Output pow_grad_exponent(Output dy, Output y, Output a, Site site = Site::here());

struct PrintOptions {
  std::string message = "";
  std::int64_t limit = 8;
};
// Print: y = x; writes the message and at most `limit` elements to stderr.
Output print(Output x, const PrintOptions& options = {}, Site site = Site::here());

struct PriorityQueueOptions {
  std::vector<PartialShape> shapes = {};
  std::int64_t capacity = 32;
  std::string container = "";
  std::string shared_name = "";
};
// PriorityQueue: A handle to a bounded queue that returns the element with the lowest priority
// value first, and among equal ones the oldest; otherwise like FIFOQueue. Component 0 of an element
// is its priority, an i64 scalar, so `types` begins with i64. A dequeue returns the lowest element
// that, when it is answered, is committed or added by the same run and not taken by another run.
Output priority_queue(GraphBuilder& g, std::vector<DType> types,
    const PriorityQueueOptions& options = {}, Site site = Site::here());

struct ProdOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Prod: The product. Integers wrap around. Reduces the dimensions `axes`, or all if the list is
// empty; keep_dims keeps them with size 1.
Output prod(Output x, const ProdOptions& options = {}, Site site = Site::here());
template <class = void>
Output prod(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return prod(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

struct ProdGradOptions {
  std::vector<std::int64_t> axes = {};
};
// ProdGrad: dx = dy * the product of the other elements, exact even with zeros: the gradient of
// Prod.
Output prod_grad(Output dy, Output x, const ProdGradOptions& options = {},
    Site site = Site::here());

struct ProdGradAlongOptions {
  std::vector<std::int64_t> axes = {};
};
// ProdGradAlong: dx = dy * the derivative, along one tangent after the other, of the product of the
// other elements, exact even with zeros: higher derivatives of Prod. Tangents have the shape of x;
// there are at most 8.
Output prod_grad_along(Output dy, Output x, const std::vector<Output>& tangents,
    const ProdGradAlongOptions& options = {}, Site site = Site::here());

struct QrOptions {
  bool full_matrices = false;
};
struct QrOutputs {
  Output q;
  Output r;
};
// Qr: x = q r for matrices [..., m, n]: q [..., m, k] has orthonormal columns, r [..., k, n] is
// upper triangular with a nonnegative diagonal; k is the smaller of m and n, or m with
// full_matrices. Computed in f64. Non-finite elements give NaN. The gradient assumes that the first
// k columns are independent, and needs k = n, or m < n known before the run.
QrOutputs qr(Output x, const QrOptions& options = {}, Site site = Site::here());

struct QueueCloseOptions {
  bool cancel_pending = false;
};
// QueueClose: Closes the queue: no more elements can be added. Enqueues that already wait still
// succeed, unless `cancel_pending` cancels them. cancelled if the queue is already closed.
Op queue_close(Output handle, const QueueCloseOptions& options = {}, Site site = Site::here());

// QueueSize: The number of elements in the queue as of the run's snapshot.
Output queue_size(Output handle, Site site = Site::here());

struct RFFTOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// RFFT: FFT of real numbers, over the last dimension: the first n / 2 + 1 elements of the last one.
// The others are their conjugates. fft_length: n of each dimension, to which x is cut off or filled
// up with zeros; if the list is empty, the dimensions of x. norm: as FFT has it.
Output rfft(Output x, const RFFTOptions& options = {}, Site site = Site::here());

struct RFFT2DOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// RFFT2D: FFT2D of real numbers, over the last 2 dimensions: the first n / 2 + 1 elements of the
// last one. The others are their conjugates. fft_length: n of each dimension, to which x is cut off
// or filled up with zeros; if the list is empty, the dimensions of x. norm: as FFT2D has it.
Output rfft2d(Output x, const RFFT2DOptions& options = {}, Site site = Site::here());

struct RFFT2DGradOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// RFFT2DGrad: The gradient of RFFT2D for an x of `shape`.
Output rfft2d_grad(Output dy, Output shape, const RFFT2DGradOptions& options = {},
    Site site = Site::here());

struct RFFT3DOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// RFFT3D: FFT3D of real numbers, over the last 3 dimensions: the first n / 2 + 1 elements of the
// last one. The others are their conjugates. fft_length: n of each dimension, to which x is cut off
// or filled up with zeros; if the list is empty, the dimensions of x. norm: as FFT3D has it.
Output rfft3d(Output x, const RFFT3DOptions& options = {}, Site site = Site::here());

struct RFFT3DGradOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// RFFT3DGrad: The gradient of RFFT3D for an x of `shape`.
Output rfft3d_grad(Output dy, Output shape, const RFFT3DGradOptions& options = {},
    Site site = Site::here());

struct RFFTGradOptions {
  std::vector<std::int64_t> fft_length = {};
  std::string norm = "backward";  // backward, ortho, forward
};
// RFFTGrad: The gradient of RFFT for an x of `shape`.
Output rfft_grad(Output dy, Output shape, const RFFTGradOptions& options = {},
    Site site = Site::here());

// RandomGamma: Numbers from gamma distributions of shape alpha and scale 1, one for each element of
// alpha: broadcast alpha for more, and divide by a rate. A result too small for the type is 0,
// which is common for alpha near 0. An alpha that is not positive and finite is an error. New
// values in each run, the same for the same seed, node name and run.
Output random_gamma(Output alpha, Site site = Site::here());

// RandomOrder: A random permutation of 0, 1, ..., n - 1, where n is the first dimension of `like`:
// indices for Gather. New values in each run, the same for the same seed, node name and run.
Output random_order(Output like, Site site = Site::here());

// RandomPoisson: Numbers from Poisson distributions with the mean `rate`, one for each element of
// rate: broadcast rate for more. A rate of 0 gives 0; from 1e10 on, the nearest normal distribution
// is used. A rate that is negative or not finite is an error. New values in each run, the same for
// the same seed, node name and run.
Output random_poisson(Output rate, Site site = Site::here());

struct RandomShuffleQueueOptions {
  std::vector<PartialShape> shapes = {};
  std::int64_t capacity = 32;
  std::int64_t min_after_dequeue = 0;
  std::int64_t seed = 0;
  std::string container = "";
  std::string shared_name = "";
};
// RandomShuffleQueue: A handle to a bounded queue that returns its elements in random order;
// otherwise like FIFOQueue. While it is open, a dequeue leaves at least `min_after_dequeue`
// elements. Which ones it returns depends on `seed`, the queue's name, the commit before the run
// and the contents of the queue: a repeated run gets the same ones, even after a restart. If
// several elements are enqueued or dequeued at once, the capacity must be at least the sum of
// `min_after_dequeue` and both numbers, or enqueues and dequeues may wait for each other.
Output random_shuffle_queue(GraphBuilder& g, std::vector<DType> types,
    const RandomShuffleQueueOptions& options = {}, Site site = Site::here());

struct RandomStandardNormalOptions {
  DType dtype = DType::f32;
  double mean = 0;
  double stddev = 1;
};
// RandomStandardNormal: Normally distributed numbers. New values in each run, but the same for the
// same seed, node name and run.
Output random_standard_normal(GraphBuilder& g, PartialShape shape,
    const RandomStandardNormalOptions& options = {}, Site site = Site::here());

struct RandomStandardNormalLikeOptions {
  double mean = 0;
  double stddev = 1;
};
// RandomStandardNormalLike: Normally distributed numbers, in the shape and type of `like`. New
// values in each run, but the same for the same seed, node name and run.
Output random_standard_normal_like(Output like,
    const RandomStandardNormalLikeOptions& options = {}, Site site = Site::here());

struct RandomUniformOptions {
  DType dtype = DType::f32;
  double low = 0;
  double high = 1;
};
// RandomUniform: Uniform numbers in [low, high). New values in each run, but the same for the same
// seed, node name and run.
Output random_uniform(GraphBuilder& g, PartialShape shape,
    const RandomUniformOptions& options = {}, Site site = Site::here());

struct RandomUniformIntOptions {
  DType dtype = DType::i64;
  std::int64_t low = 0;
};
// RandomUniformInt: Uniform integers in [low, high). New values in each run, but the same for the
// same seed, node name and run.
Output random_uniform_int(GraphBuilder& g, PartialShape shape, std::int64_t high,
    const RandomUniformIntOptions& options = {}, Site site = Site::here());

struct RandomUniformLikeOptions {
  double low = 0;
  double high = 1;
};
// RandomUniformLike: Uniform numbers in [low, high), in the shape and type of `like`. New values in
// each run, but the same for the same seed, node name and run.
Output random_uniform_like(Output like, const RandomUniformLikeOptions& options = {},
    Site site = Site::here());

// Range: The vector start, start + delta, ... up to but excluding limit. The inputs are scalars;
// delta may be negative but not 0. No gradient flows to limit.
Output range(Output start, Output limit, Output delta, Site site = Site::here());

struct RankOptions {
  DType out_type = DType::i64;
};
// Rank: The number of dimensions of x, in host memory.
Output rank(Output x, const RankOptions& options = {}, Site site = Site::here());

// ReadVariable: The variable's value as of the run's snapshot, or, if ordered after a write of its
// own run, the value that the write leaves. failed_precondition if the variable has no value.
Output read_variable(Output handle, DType dtype, Site site = Site::here());

// Real: The real part of z.
Output real(Output z, Site site = Site::here());

// Reciprocal: y = 1 / x.
Output reciprocal(Output x, Site site = Site::here());

// ReciprocalGrad: dx = -dy * y^2: the gradient of Reciprocal.
Output reciprocal_grad(Output dy, Output y, Site site = Site::here());

// Relu: y = max(x, 0). The gradient at 0 is 0.
Output relu(Output x, Site site = Site::here());

// Relu6: y = min(max(x, 0), 6). The gradient at 0 and at 6 is 0.
Output relu6(Output x, Site site = Site::here());

// Relu6Grad: The gradient of Relu6, given its output y.
Output relu6_grad(Output dy, Output y, Site site = Site::here());

// ReluGrad: The gradient of Relu, given its output y.
Output relu_grad(Output dy, Output y, Site site = Site::here());

// ReplicaMean: The mean of a value over the replicas of a step, equal in all of them: with N inputs
// their mean, with one input that input.
Output replica_mean(const std::vector<Output>& parts, Site site = Site::here());

// Reshape: The elements of x, in the same order, in another shape. One dimension may be -1: it
// follows from the number of elements.
Output reshape(Output x, Output shape, Site site = Site::here());

struct ResizeOptions {
  std::string method = "bilinear";  // nearest, bilinear
};
// Resize: Images x [n,h,w,c] resized to `size`, [height, width]. The centre of pixel i of n is at
// (i + 1/2) / n of the image, as in TensorFlow 2 and in PyTorch with align_corners = False
// (nearest: its nearest-exact). bilinear interpolates between the two nearest pixels in each
// direction, without smoothing when an image shrinks; nearest takes the pixel that contains the
// point.
Output resize(Output x, Output size, const ResizeOptions& options = {}, Site site = Site::here());

struct ResizeGradOptions {
  std::string method = "bilinear";  // nearest, bilinear
};
// ResizeGrad: The gradient of Resize for images of `shape`.
Output resize_grad(Output dy, Output shape, const ResizeGradOptions& options = {},
    Site site = Site::here());

struct RestoreOptions {
  std::vector<PartialShape> shapes = {};
};
// Restore: Reads the tensors `names` from the files that Save wrote under `prefix`; not_found for
// an unknown name, invalid_argument for another dtype or shape.
std::vector<Output> restore(Output prefix, std::vector<std::string> names,
    std::vector<DType> types, const RestoreOptions& options = {}, Site site = Site::here());

struct ReverseOptions {
  std::vector<std::int64_t> axes = {};
};
// Reverse: x reversed along `axes`, or along all dimensions if the list is empty.
Output reverse(Output x, const ReverseOptions& options = {}, Site site = Site::here());
template <class = void>
Output reverse(Output x, Ints axes, Site site = Site::here()) {
  return reverse(x, {.axes = axes}, std::move(site));
}

struct ReverseSequenceOptions {
  std::int64_t axis = 1;
  std::int64_t batch_axis = 0;
};
// ReverseSequence: For each slice i of x along batch_axis, the first lengths[i] slices along `axis`
// in reverse order; the rest stays in place.
Output reverse_sequence(Output x, Output lengths, const ReverseSequenceOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output reverse_sequence(Output x, Output lengths, T axis, std::int64_t batch_axis = 0,
    Site site = Site::here()) {
  return reverse_sequence(x, lengths, {.axis = axis, .batch_axis = batch_axis}, std::move(site));
}

// RightShift: x shifted right by `bits`, keeping the sign. If `bits` is negative or at least the
// width of the type: -1 for a negative x, else 0. The inputs broadcast.
Output right_shift(const Operand& x, const Operand& bits, Site site = Site::here());

// Roll: y[(i + shift) mod n] = x[i] along each of `axes`: elements moved over the end return at the
// beginning. If an axis occurs twice, its shifts add up.
Output roll(Output x, std::vector<std::int64_t> shift, std::vector<std::int64_t> axes,
    Site site = Site::here());

// Round: The nearest integer; halves round to even.
Output round(Output x, Site site = Site::here());

// Rsqrt: y = 1 / sqrt(x).
Output rsqrt(Output x, Site site = Site::here());

// RsqrtGrad: dx = -dy * y^3 / 2: the gradient of Rsqrt.
Output rsqrt_grad(Output dy, Output y, Site site = Site::here());

// Save: Writes the tensors under their `names` to `prefix`.safetensors when the run commits: a
// failed run leaves an older file unchanged. If several replicas would write one file, the first
// one does.
Op save(Output prefix, const std::vector<Output>& tensors, std::vector<std::string> names,
    Site site = Site::here());

// ScalarSummary: A serialized Summary protocol buffer with the elements of x as f32 numbers, which
// TensorBoard draws as curves. `tags` are their names, one for each element, all different. NaN and
// infinities are kept.
Output scalar_summary(Output x, std::vector<std::string> tags, Site site = Site::here());

// ScaleRows: y[i, ...] = x[i, ...] * scale[i], where the dimensions of scale are the first ones of
// x: the gradient of a loss per row. A row scaled by 0 is 0 everywhere, even where x is infinite or
// NaN.
Output scale_rows(Output x, Output scale, Site site = Site::here());

struct ScatterAddOptions {
  std::int64_t replicas = 1;
};
// ScatterAdd: var[indices[i], ...] += rows[i, ...], row by row and replica by replica. An index out
// of range is an error.
Op scatter_add(Output var, Output indices, Output rows, const ScatterAddOptions& options = {},
    Site site = Site::here());

struct ScatterAlongOptions {
  std::int64_t axis = -1;
};
// ScatterAlong: The elements of dy added, in order, to zeros of `shape` where `indices` took them
// from along `axis`: the gradient of TakeAlong.
Output scatter_along(Output dy, Output indices, Output shape,
    const ScatterAlongOptions& options = {}, Site site = Site::here());

// ScatterNd: Zeros of `shape` with the slices of updates added, in order, at the indices that
// GatherNd would take them from. An index out of range is an error.
Output scatter_nd(Output indices, Output updates, Output shape, Site site = Site::here());

struct ScatterSubOptions {
  std::int64_t replicas = 1;
};
// ScatterSub: var[indices[i], ...] -= rows[i, ...], row by row and replica by replica. An index out
// of range is an error.
Op scatter_sub(Output var, Output indices, Output rows, const ScatterSubOptions& options = {},
    Site site = Site::here());

struct ScatterUpdateOptions {
  std::int64_t replicas = 1;
};
// ScatterUpdate: var[indices[i], ...] = rows[i, ...]. If several rows have the same index, the last
// one (in replica order) wins. An index out of range is an error.
Op scatter_update(Output var, Output indices, Output rows,
    const ScatterUpdateOptions& options = {}, Site site = Site::here());

struct SearchSortedOptions {
  bool right = false;
};
// SearchSorted: For each value, the number of elements in the ascending last dimension of sequence
// that are below it, or with `right` not above it. A vector is used for all values; otherwise the
// other dimensions are equal. A NaN is above all numbers. A sequence that is not sorted is an
// error.
Output search_sorted(Output sequence, Output values, const SearchSortedOptions& options = {},
    Site site = Site::here());

// SegmentMax: y[s] = the maximum of the slices of data whose id is s, NaN if one of them is; 0 if
// there are none. Equal maxima share the gradient equally. The ids, one for each slice data[i,
// ...], must be in ascending order; the last one determines the number of segments.
Output segment_max(Output data, Output segment_ids, Site site = Site::here());

// SegmentMean: y[s] = the mean of the slices of data whose id is s; 0 if there are none. The ids,
// one for each slice data[i, ...], must be in ascending order; the last one determines the number
// of segments.
Output segment_mean(Output data, Output segment_ids, Site site = Site::here());

// SegmentMin: y[s] = the minimum of the slices of data whose id is s, NaN if one of them is; 0 if
// there are none. Equal minima share the gradient equally. The ids, one for each slice data[i,
// ...], must be in ascending order; the last one determines the number of segments.
Output segment_min(Output data, Output segment_ids, Site site = Site::here());

// SegmentProd: y[s] = the product of the slices of data whose id is s; 1 if there are none. The
// gradient is exact even with zeros. The ids, one for each slice data[i, ...], must be in ascending
// order; the last one determines the number of segments.
Output segment_prod(Output data, Output segment_ids, Site site = Site::here());

// SegmentSum: y[s] = the sum of the slices of data whose id is s; 0 if there are none. The ids, one
// for each slice data[i, ...], must be in ascending order; the last one determines the number of
// segments.
Output segment_sum(Output data, Output segment_ids, Site site = Site::here());

// Select: a where the condition is true, else b. All three broadcast. The side that is not taken
// gets a zero gradient. If that side was computed with an infinite slope, such as log(x) at 0, then
// 0 * inf is NaN further back; to avoid that, select its argument first: select(x > 0, log(select(x
// > 0, x, 1)), 0).
Output select(Output condition, const Operand& a, const Operand& b, Site site = Site::here());

struct SelfAdjointEigOutputs {
  Output e;
  Output v;
};
// SelfAdjointEig: (x + x^T) / 2 = v diag(e) v^T for matrices [..., n, n]: eigenvalues e [..., n] in
// ascending order and eigenvectors as the orthonormal columns of v [..., n, n]; x itself should be
// symmetric. In each column, the first element that is at least half as large as the largest is
// positive. Computed in f64. Non-finite elements give NaN. Eigenvectors of equal eigenvalues have
// no gradient: nothing flows through them.
SelfAdjointEigOutputs self_adjoint_eig(Output x, Site site = Site::here());

// Selu: y = 1.0507 x if x > 0, else 1.0507 * 1.6733 (e^x - 1) (Klambauer et al., 2017).
Output selu(Output x, Site site = Site::here());

// SeluGrad: The gradient of Selu, given its input.
Output selu_grad(Output dy, Output x, Site site = Site::here());

struct ShapeOptions {
  DType out_type = DType::i64;
};
// Shape: The shape of x as a vector in host memory.
Output shape(Output x, const ShapeOptions& options = {}, Site site = Site::here());

struct ShiftOptions {
  std::int64_t axis = 0;
};
// Shift: y[i + by] = x[i] along `axis`: elements moved over the end are lost, and zeros (false)
// fill the gap.
Output shift(Output x, std::int64_t by, const ShiftOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output shift(Output x, std::int64_t by, T axis, Site site = Site::here()) {
  return shift(x, by, {.axis = axis}, std::move(site));
}

// Sigmoid: y = 1 / (1 + exp(-x)).
Output sigmoid(Output x, Site site = Site::here());

// SigmoidGrad: dx = dy * y * (1 - y): the gradient of Sigmoid.
Output sigmoid_grad(Output dy, Output y, Site site = Site::here());

// Sign: y = 1 if x is positive, 0 if zero, -1 if negative; NaN stays NaN.
Output sign(Output x, Site site = Site::here());

// Sin: y = sin(x), x in radians.
Output sin(Output x, Site site = Site::here());

// Sinh: y = (e^x - e^-x) / 2.
Output sinh(Output x, Site site = Site::here());

struct SizeOptions {
  DType out_type = DType::i64;
};
// Size: The number of elements of x, in host memory.
Output size(Output x, const SizeOptions& options = {}, Site site = Site::here());

// Slice: The block of x that starts at `begin` and has `size` elements in each dimension; -1 means
// up to the end.
Output slice(Output x, Output begin, Output size, Site site = Site::here());

// SliceAdd: sums (of `shape`) with dy added to the block at `begin`: sums + SliceGrad(...).
Output slice_add(Output sums, Output dy, Output begin, Output shape, Site site = Site::here());

// SliceGrad: Zeros of `shape` with dy placed at `begin`: the gradient of Slice.
Output slice_grad(Output dy, Output begin, Output shape, Site site = Site::here());

// Softmax: y = e^logits / sum(e^logits) over the last dimension, without overflow.
Output softmax(Output logits, Site site = Site::here());

struct SoftmaxCrossEntropyWithLogitsOutputs {
  Output loss;
  Output backprop;
};
// SoftmaxCrossEntropyWithLogits: The loss [...] of logits [...,C] against probabilities [...,C],
// one for each row; backprop is d loss / d logits. The labels have a gradient, too.
SoftmaxCrossEntropyWithLogitsOutputs softmax_cross_entropy_with_logits(Output logits,
    Output labels, Site site = Site::here());

// SoftmaxGrad: The gradient of Softmax, given its output y.
Output softmax_grad(Output dy, Output y, Site site = Site::here());

// Softplus: y = log(1 + e^x).
Output softplus(Output x, Site site = Site::here());

// SoftplusGrad: The gradient of Softplus, given its output y.
Output softplus_grad(Output dy, Output y, Site site = Site::here());

// Softsign: y = x / (1 + |x|). Saturates like tanh, with heavier tails.
Output softsign(Output x, Site site = Site::here());

// SoftsignGrad: dx = dy / (1 + |x|)^2: the gradient of Softsign.
Output softsign_grad(Output dy, Output x, Site site = Site::here());

struct SortOptions {
  std::int64_t axis = -1;
  bool descending = false;
};
struct SortOutputs {
  Output y;
  Output indices;
};
// Sort: The elements along `axis` in ascending or descending order, and their original positions.
// Equal elements keep their order, and -0 equals 0; a NaN is above all numbers, as NumPy sorts.
SortOutputs sort(Output x, const SortOptions& options = {}, Site site = Site::here());
template <Integer T>
SortOutputs sort(Output x, T axis, Flag descending = false, Site site = Site::here()) {
  return sort(x, {.axis = axis, .descending = descending}, std::move(site));
}

struct SparseSoftmaxCrossEntropyWithLogitsOutputs {
  Output loss;
  Output backprop;
};
// SparseSoftmaxCrossEntropyWithLogits: The loss [...] of logits [...,C] against class numbers
// [...], one for each row; backprop is d loss / d logits. A label outside [0, C) is
// invalid_argument.
SparseSoftmaxCrossEntropyWithLogitsOutputs sparse_softmax_cross_entropy_with_logits(
    Output logits, Output labels, Site site = Site::here());

struct SplitOptions {
  std::int64_t axis = 0;
  std::vector<std::int64_t> sizes = {};
};
// Split: x split along `axis` into N parts, of equal size or of the given sizes.
std::vector<Output> split(Output x, std::int64_t n, const SplitOptions& options = {},
    Site site = Site::here());
template <Integer T>
std::vector<Output> split(Output x, std::int64_t n, T axis, std::vector<std::int64_t> sizes = {},
    Site site = Site::here()) {
  return split(x, n, {.axis = axis, .sizes = sizes}, std::move(site));
}

struct SpreadOptions {
  std::vector<std::int64_t> axes = {};
  bool mean = false;
};
// Spread: dy, shaped like a reduction over `axes` of a tensor of `shape` (with or without the
// reduced dimensions), repeated along them; divided by their size for `mean`. The gradient of Sum
// and Mean.
Output spread(Output dy, Output shape, const SpreadOptions& options = {},
    Site site = Site::here());

// Sqrt: y = sqrt(x); NaN below 0, but of a complex x the root whose real part is not negative. The
// gradient at 0 is inf.
Output sqrt(Output x, Site site = Site::here());

// SqrtGrad: dx = dy / (2 y): the gradient of Sqrt.
Output sqrt_grad(Output dy, Output y, Site site = Site::here());

// Square: y = x * x. Integers wrap around.
Output square(Output x, Site site = Site::here());

// SquaredDifference: y = (a - b)^2. The inputs broadcast.
Output squared_difference(const Operand& a, const Operand& b, Site site = Site::here());

struct SqueezeOptions {
  std::vector<std::int64_t> axes = {};
};
// Squeeze: x without the dimensions `axes`, whose size must be 1; if the list is empty, without all
// dimensions of size 1.
Output squeeze(Output x, const SqueezeOptions& options = {}, Site site = Site::here());
template <class = void>
Output squeeze(Output x, Ints axes, Site site = Site::here()) {
  return squeeze(x, {.axes = axes}, std::move(site));
}

// StopGradient: y = x; gradients end here.
Output stop_gradient(Output x, Site site = Site::here());

struct StridedSliceOptions {
  std::int64_t begin_mask = 0;
  std::int64_t end_mask = 0;
  std::int64_t ellipsis_mask = 0;
  std::int64_t new_axis_mask = 0;
  std::int64_t shrink_axis_mask = 0;
};
// StridedSlice: Along each dimension, the elements begin, begin + stride, ... before end; negative
// indices count from the end, and bounds are clipped. Bit i of a mask concerns entry i: begin_mask
// and end_mask, its range has no bound on that side; shrink_axis_mask, it is the single index
// `begin`, which must exist, and the dimension is removed; new_axis_mask, it is a new dimension of
// size 1; ellipsis_mask (one bit), it is all dimensions that no other entry takes. Dimensions after
// the last entry are taken whole. Ellipsis takes precedence over a new dimension, and that over an
// index.
Output strided_slice(Output x, Output begin, Output end, Output strides,
    const StridedSliceOptions& options = {}, Site site = Site::here());

struct StridedSliceAddOptions {
  std::int64_t begin_mask = 0;
  std::int64_t end_mask = 0;
  std::int64_t ellipsis_mask = 0;
  std::int64_t new_axis_mask = 0;
  std::int64_t shrink_axis_mask = 0;
};
// StridedSliceAdd: sums (of `shape`) with dy added where StridedSlice takes elements: sums +
// StridedSliceGrad(...).
Output strided_slice_add(Output sums, Output dy, Output shape, Output begin, Output end,
    Output strides, const StridedSliceAddOptions& options = {}, Site site = Site::here());

struct StridedSliceGradOptions {
  std::int64_t begin_mask = 0;
  std::int64_t end_mask = 0;
  std::int64_t ellipsis_mask = 0;
  std::int64_t new_axis_mask = 0;
  std::int64_t shrink_axis_mask = 0;
};
// StridedSliceGrad: Zeros of `shape` with dy where StridedSlice takes elements: its gradient.
Output strided_slice_grad(Output dy, Output shape, Output begin, Output end, Output strides,
    const StridedSliceGradOptions& options = {}, Site site = Site::here());

struct StringHashOptions {
  std::int64_t seed = 0;
};
// StringHash: The hash of each string in x as a number in [0, buckets), the same in every program
// and on every machine. Different strings may have the same number.
Output string_hash(Output x, std::int64_t buckets, const StringHashOptions& options = {},
    Site site = Site::here());

struct StringJoinOptions {
  std::string separator = "";
};
// StringJoin: The values joined elementwise, with `separator` between them. Scalars are joined to
// every element of the others, which all have the same shape.
Output string_join(const std::vector<Output>& values, const StringJoinOptions& options = {},
    Site site = Site::here());

struct StringSplitOptions {
  std::string separator = "";
};
struct StringSplitOutputs {
  Output parts;
  Output lengths;
};
// StringSplit: The parts of each string in x between separators, all in one vector, and the number
// of parts of each string. Two adjacent separators have an empty part between them. Without a
// separator: the words between blanks, none of them empty.
StringSplitOutputs string_split(Output x, const StringSplitOptions& options = {},
    Site site = Site::here());

struct StringToNumberOptions {
  DType out_type = DType::f32;
};
// StringToNumber: The decimal number in each string of x, which blanks may surround; any other
// string, and a number that the type cannot hold, is an error.
Output string_to_number(Output x, const StringToNumberOptions& options = {},
    Site site = Site::here());

// Sub: y = a - b. Integers wrap around. The inputs broadcast.
Output sub(const Operand& a, const Operand& b, Site site = Site::here());

struct SumOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Sum: The sum. Integers wrap around. Reduces the dimensions `axes`, or all if the list is empty;
// keep_dims keeps them with size 1.
Output sum(Output x, const SumOptions& options = {}, Site site = Site::here());
template <class = void>
Output sum(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return sum(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// SumToShape: x summed over the dimensions that broadcasting `shape` to the shape of x would
// repeat: the gradient of a broadcast.
Output sum_to_shape(Output x, PartialShape shape, Site site = Site::here());

// SumToShapeOf: SumToShape with the shape of `like`; its values are not read.
Output sum_to_shape_of(Output x, Output like, Site site = Site::here());

struct SvdOutputs {
  Output s;
  Output u;
  Output v;
};
// Svd: x = u diag(s) v^T for matrices [..., m, n]: singular values s [..., k] in descending order,
// k being the smaller of m and n, and orthonormal columns u [..., m, k] and v [..., n, k]. In each
// column of u, the first element that is at least half as large as the largest is positive.
// Computed in f64 by Jacobi's method. Non-finite elements give NaN. Singular vectors of equal or
// zero singular values have no gradient: nothing flows through them.
SvdOutputs svd(Output x, Site site = Site::here());

struct TakeAlongOptions {
  std::int64_t axis = -1;
};
// TakeAlong: y[.., i, ..] = x[.., indices[.., i, ..], ..]: elements by their position along `axis`,
// as returned by TopK, Sort and ArgSort. The other dimensions are equal; an index out of range is
// an error.
Output take_along(Output x, Output indices, const TakeAlongOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output take_along(Output x, Output indices, T axis, Site site = Site::here()) {
  return take_along(x, indices, {.axis = axis}, std::move(site));
}

// Tan: y = tan(x), x in radians.
Output tan(Output x, Site site = Site::here());

// Tanh: y = tanh(x).
Output tanh(Output x, Site site = Site::here());

// TanhGrad: dx = dy * (1 - y^2): the gradient of Tanh.
Output tanh_grad(Output dy, Output y, Site site = Site::here());

// TextSummary: A serialized Summary protocol buffer with the strings of x, of any shape, which
// TensorBoard shows as Markdown: a vector as a column, a matrix as a table. Invalid UTF-8 becomes
// U+FFFD.
Output text_summary(Output x, std::string tag, Site site = Site::here());

// Tile: x repeated multiples[i] times along dimension i.
Output tile(Output x, std::vector<std::int64_t> multiples, Site site = Site::here());

// TileGrad: The sum over the copies that Tile made of a tensor of `shape`: its gradient.
Output tile_grad(Output dy, Output shape, std::vector<std::int64_t> multiples,
    Site site = Site::here());

struct TopKOutputs {
  Output values;
  Output indices;
};
// TopK: The k largest elements along the last dimension, the largest first, and their positions;
// equal elements in order of position. -0 equals 0; a NaN is above all numbers, as in Max and
// ArgMax.
TopKOutputs top_k(Output x, std::int64_t k, Site site = Site::here());

struct TransposeOptions {
  std::vector<std::int64_t> perm = {};
};
// Transpose: Dimension i of the result is dimension perm[i] of x; without perm, the dimensions in
// reverse order.
Output transpose(Output x, const TransposeOptions& options = {}, Site site = Site::here());
template <class = void>
Output transpose(Output x, Ints perm, Site site = Site::here()) {
  return transpose(x, {.perm = perm}, std::move(site));
}

struct TruncatedNormalOptions {
  DType dtype = DType::f32;
  double mean = 0;
  double stddev = 1;
};
// TruncatedNormal: Normally distributed numbers; those more than two standard deviations from the
// mean are drawn again. New values in each run, but the same for the same seed, node name and run.
Output truncated_normal(GraphBuilder& g, PartialShape shape,
    const TruncatedNormalOptions& options = {}, Site site = Site::here());

struct UniformCandidateSamplerOptions {
  DType tcount = DType::f32;
  bool unique = true;
};
struct UniformCandidateSamplerOutputs {
  Output sampled;
  Output true_expected;
  Output sampled_expected;
};
// UniformCandidateSampler: n classes of [0, range_max), each as probable as any other, and how
// often each of true_classes and of those drawn is drawn on average: with `unique`, where no class
// is drawn twice, the probability that it is among as many draws as that took. A true class outside
// is an error. New values in each run, the same for the same seed, node name and run.
UniformCandidateSamplerOutputs uniform_candidate_sampler(Output true_classes, std::int64_t n,
    std::int64_t range_max, const UniformCandidateSamplerOptions& options = {},
    Site site = Site::here());

struct UniqueOutputs {
  Output y;
  Output index;
  Output counts;
};
// Unique: The distinct values of a vector, in the order of their first occurrence: x[i] =
// y[index[i]], and y[j] occurs counts[j] times. All NaN are one value, as in NumPy; -0 equals 0.
UniqueOutputs unique(Output x, Site site = Site::here());

struct UnpackOptions {
  std::int64_t axis = 0;
};
// Unpack: The N slices of x along `axis`, without that dimension: the inverse of Pack.
std::vector<Output> unpack(Output x, std::int64_t n, const UnpackOptions& options = {},
    Site site = Site::here());
template <Integer T>
std::vector<Output> unpack(Output x, std::int64_t n, T axis, Site site = Site::here()) {
  return unpack(x, n, {.axis = axis}, std::move(site));
}

// UnsortedSegmentMax: y[s] = the maximum of the slices of data whose id is s, NaN if one of them
// is; the lowest finite value if there are none. Equal maxima share the gradient equally.
// segment_ids has the first dimensions of data; an id outside [0, num_segments) is an error.
Output unsorted_segment_max(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

// UnsortedSegmentMean: y[s] = the mean of the slices of data whose id is s; 0 if there are none.
// segment_ids has the first dimensions of data; an id outside [0, num_segments) is an error.
Output unsorted_segment_mean(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

// UnsortedSegmentMin: y[s] = the minimum of the slices of data whose id is s, NaN if one of them
// is; the largest finite value if there are none. Equal minima share the gradient equally.
// segment_ids has the first dimensions of data; an id outside [0, num_segments) is an error.
Output unsorted_segment_min(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

// UnsortedSegmentProd: y[s] = the product of the slices of data whose id is s; 1 if there are none.
// The gradient is exact even with zeros. segment_ids has the first dimensions of data; an id
// outside [0, num_segments) is an error.
Output unsorted_segment_prod(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

// UnsortedSegmentSum: sums[s] = the sum of the slices of data whose id is s. segment_ids has the
// first dimensions of data; an id outside [0, num_segments) is an error.
Output unsorted_segment_sum(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

struct VocabularyIndexOptions {
  std::int64_t missing = -1;
};
// VocabularyIndex: The index of each string of x in `words`, a vector of distinct strings;
// `missing` if it is not among them. Gather is the inverse.
Output vocabulary_index(Output x, Tensor words, const VocabularyIndexOptions& options = {},
    Site site = Site::here());

// Where: The indices of all elements that are true or nonzero, in order: [n, rank], where n is
// known only in the run. A NaN is nonzero. GatherNd takes such indices.
Output where(Output condition, Site site = Site::here());

// ZerosLike: Zeros (false) with the shape and type of x.
Output zeros_like(Output x, Site site = Site::here());

}  // namespace troupe
