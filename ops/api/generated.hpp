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

// Abs: y = |x|. The gradient at 0 is 0.
Output abs(Output x, Site site = Site::here());

// Acos: The angle in [0, pi] whose cosine is x; NaN beyond [-1, 1]. The gradient at 1 and -1 is
// -inf.
Output acos(Output x, Site site = Site::here());

// Acosh: The inverse of Cosh, not negative; NaN below 1. The gradient at 1 is inf.
Output acosh(Output x, Site site = Site::here());

// Add: y = a + b. Integers wrap around. The inputs broadcast.
Output add(const Operand& a, const Operand& b, Site site = Site::here());

// AddN: The sum of one or more tensors of one shape, added from left to right.
Output add_n(const std::vector<Output>& values, Site site = Site::here());

struct AllOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// All: True when all elements are. Over the dimensions `axes`, all of them when the list is empty;
// keep_dims leaves them as dimensions of size 1.
Output all(Output x, const AllOptions& options = {}, Site site = Site::here());
template <class = void>
Output all(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return all(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

struct AnyOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Any: True when any element is. Over the dimensions `axes`, all of them when the list is empty;
// keep_dims leaves them as dimensions of size 1.
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
// sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon); step = t. m and v are shaped like
// var, step is an i64 scalar. A gradient whose square overflows (in f32 above 1.8e19) makes v
// infinite, and later steps 0.
Op apply_adam(Output var, Output m, Output v, Output step, Output lr, Output beta1, Output beta2,
    Output epsilon, Output grad, const ApplyAdamOptions& options = {}, Site site = Site::here());

struct ApplyAdamWOptions {
  std::int64_t replicas = 1;
};
// ApplyAdamW: t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= lr *
// decay * var; var -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon); step = t. m and
// v are shaped like var, step is an i64 scalar. A gradient whose square overflows (in f32 above
// 1.8e19) makes v infinite, and later steps 0.
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
// - l1) / (after / lr + 2 l2). A rate of 0 gives NaN.
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
// move, with the Euclidean norms of the whole variable; where one of them is 0 their ratio is 1.
// step = t.
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
// training step does it for every average of what its loss is computed from. In a function one that
// is training_only is left out of all other steps.
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

struct ApplySparseAdamWhenOptions {
  std::int64_t replicas = 1;
};
// ApplySparseAdamWhen: As ApplySparseAdam, in a run in which `when` is true; nothing changes in
// others.
Op apply_sparse_adam_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output indices, Output rows, Output when,
    const ApplySparseAdamWhenOptions& options = {}, Site site = Site::here());

struct ApplySparseGradientDescentOptions {
  std::int64_t replicas = 1;
};
// ApplySparseGradientDescent: ApplyGradientDescent with a gradient that is 0 but for `rows` at
// `indices`; those of one place are added up. An index outside is an error.
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

struct ArgMaxOptions {
  std::int64_t axis = -1;
};
// ArgMax: The position along `axis` of the first maximum; of the first NaN if there is one. The
// dimension goes; it must not be empty.
Output arg_max(Output x, const ArgMaxOptions& options = {}, Site site = Site::here());
template <Integer T>
Output arg_max(Output x, T axis, Site site = Site::here()) {
  return arg_max(x, {.axis = axis}, std::move(site));
}

struct ArgMinOptions {
  std::int64_t axis = -1;
};
// ArgMin: The position along `axis` of the first minimum; of the first NaN if there is one. The
// dimension goes; it must not be empty.
Output arg_min(Output x, const ArgMinOptions& options = {}, Site site = Site::here());
template <Integer T>
Output arg_min(Output x, T axis, Site site = Site::here()) {
  return arg_min(x, {.axis = axis}, std::move(site));
}

struct ArgSortOptions {
  std::int64_t axis = -1;
  bool descending = false;
};
// ArgSort: Where the elements stand that are in ascending or descending order along `axis`. Equal
// elements keep their order, and -0 equals 0; a NaN is above all numbers, as NumPy sorts.
Output arg_sort(Output x, const ArgSortOptions& options = {}, Site site = Site::here());
template <Integer T>
Output arg_sort(Output x, T axis, Flag descending = false, Site site = Site::here()) {
  return arg_sort(x, {.axis = axis, .descending = descending}, std::move(site));
}

// Asin: The angle in [-pi/2, pi/2] whose sine is x; NaN beyond [-1, 1]. The gradient at 1 and -1 is
// inf.
Output asin(Output x, Site site = Site::here());

// Asinh: The inverse of Sinh.
Output asinh(Output x, Site site = Site::here());

struct AssertOptions {
  std::string message = "";
};
// Assert: Fails the run with `message` unless the scalar condition is true. What depends on it
// should have it as a control input.
Op assert_(Output condition, const AssertOptions& options = {}, Site site = Site::here());

struct AssignOptions {
  std::int64_t replicas = 1;
};
// Assign: The variable becomes `value`; this is what gives it its first one. Of several replicas
// the first one's value counts.
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
// (0, 0) is NaN. The inputs broadcast.
Output atan2(const Operand& y, const Operand& x, Site site = Site::here());

// Atanh: The inverse of Tanh; inf at 1, -inf at -1, NaN beyond. The gradient at 1 and -1 is inf.
Output atanh(Output x, Site site = Site::here());

struct AudioSummaryOptions {
  std::int64_t max_outputs = 3;
};
// AudioSummary: A serialized Summary protocol buffer with the first `max_outputs` sounds of x,
// [batch,frames] or [batch,frames,channels] in [-1,1], as WAV of 16 bits a sample. `sample_rate` is
// in hertz. Their tags are tag/audio/0, tag/audio/1..., or tag/audio where max_outputs is 1.
// Samples beyond the range are clipped, NaN is silence.
Output audio_summary(Output x, std::string tag, double sample_rate,
    const AudioSummaryOptions& options = {}, Site site = Site::here());

struct AvgPoolOptions {
  std::string padding = "VALID";  // SAME, VALID
};
// AvgPool: The mean of each window over height and width of x [n,h,w,c]; ksize and strides are
// [h,w] or [1,h,w,1]. Padding is not counted.
Output avg_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    const AvgPoolOptions& options = {}, Site site = Site::here());
template <class = void>
Output avg_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    std::string padding, Site site = Site::here()) {
  return avg_pool(x, ksize, strides, {.padding = padding}, std::move(site));
}

struct AvgPoolGradOptions {
  std::string padding = "VALID";  // SAME, VALID
};
// AvgPoolGrad: The gradient of AvgPool for images of shape x_sizes.
Output avg_pool_grad(Output x_sizes, Output dy, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const AvgPoolGradOptions& options = {},
    Site site = Site::here());

struct BatchMatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
// BatchMatMul: The matrix products of the last two dimensions of a [...,m,k] and b [...,k,n], whose
// leading dimensions broadcast, as numpy.matmul's do; MatMul for each.
Output batch_mat_mul(Output a, Output b, const BatchMatMulOptions& options = {},
    Site site = Site::here());

// Bernoulli: Truth values, each true with the probability p. A p that is not in [0, 1] is an error.
// New values in each run, the same for the same seed, node name and run.
Output bernoulli(Output p, Site site = Site::here());

// BiasAdd: y = x + bias, where bias has one element per channel: the last dimension of x.
Output bias_add(Output x, Output bias, Site site = Site::here());

// BiasAddGrad: The sum of dy over every dimension but the last. The sum has a fixed order.
Output bias_add_grad(Output dy, Site site = Site::here());

// Bincount: counts[v] = how many elements of x are v, for v in [0, size); another one is an error.
// With weights, it is UnsortedSegmentSum.
Output bincount(Output x, std::int64_t size, Site site = Site::here());

// BitwiseAnd: The bits that are in a and in b. The inputs broadcast.
Output bitwise_and(const Operand& a, const Operand& b, Site site = Site::here());

// BitwiseOr: The bits that are in a or in b. The inputs broadcast.
Output bitwise_or(const Operand& a, const Operand& b, Site site = Site::here());

// BitwiseXor: The bits that are in one of a and b. The inputs broadcast.
Output bitwise_xor(const Operand& a, const Operand& b, Site site = Site::here());

// BroadcastTo: x repeated to `shape`, to which it must broadcast.
Output broadcast_to(Output x, Output shape, Site site = Site::here());

// Cast: The values of x in another type. Floats become integers towards zero, values out of range
// the nearest end of it, NaN 0; integers keep their low bits; everything but 0 becomes true. No
// gradient flows through integers and bool.
Output cast(Output x, DType to, Site site = Site::here());

// Categorical: For each row of logits [batch, classes], n classes [batch, n], drawn with the
// probabilities softmax(logits). One of probability 0, as with the logit -inf, is never drawn. A
// logit that is NaN or inf is an error, as is a row without a class to draw. New values in each
// run, the same for the same seed, node name and run.
Output categorical(Output logits, std::int64_t n, Site site = Site::here());

// Ceil: The smallest integer not below x.
Output ceil(Output x, Site site = Site::here());

struct CheckNumericsOptions {
  std::string message = "CheckNumerics";
};
// CheckNumerics: y = x; fails the run where x holds an infinity or a NaN, and names the first.
Output check_numerics(Output x, const CheckNumericsOptions& options = {},
    Site site = Site::here());

// Cholesky: The lower triangular L of (x + x^T) / 2 = L L^T for matrices [..., n, n]: of x itself,
// which should be symmetric. One that is not positive definite is an error; one with elements that
// are not finite gives NaN.
Output cholesky(Output x, Site site = Site::here());

struct ConcatOptions {
  std::int64_t axis = 0;
};
// Concat: The values one after another along `axis`, in which alone their shapes may differ; a
// negative axis counts from the end.
Output concat(const std::vector<Output>& values, const ConcatOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output concat(const std::vector<Output>& values, T axis, Site site = Site::here()) {
  return concat(values, {.axis = axis}, std::move(site));
}

struct ConcatGradOptions {
  std::int64_t axis = 0;
};
// ConcatGrad: Takes dy apart into tensors of the given shapes, which must fill it along `axis`: the
// gradient of Concat.
std::vector<Output> concat_grad(Output dy, const std::vector<Output>& shapes,
    const ConcatGradOptions& options = {}, Site site = Site::here());

struct Conv2DOptions {
  std::vector<std::int64_t> strides = {1, 1};
  std::string padding = "SAME";  // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};
  std::vector<std::int64_t> dilations = {1, 1};
  std::int64_t groups = 1;
};
// Conv2D: Convolution of images x [n,h,w,c] with filter [h,w,c,k] to [n,h',w',k]. strides and
// dilations are [h,w] or [1,h,w,1]; explicit_paddings, used with padding EXPLICIT, are
// [top,bottom,left,right]. SAME pads as little as keeps every pixel in a window, one more after
// than before when odd. With `groups` the filter is [h,w,c/groups,k], and each of as many equal
// groups of the output channels sees its own group of input channels; groups = c is a depthwise
// convolution.
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
// Conv2DBackpropInput: The gradient of Conv2D for its images, whose shape is x_sizes; in other
// words a transposed convolution of dy.
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
// Cumprod: y[i] = x[0] * ... * x[i] along `axis`. The gradient is exact with zeros. With
// `exclusive` without element i itself; with `reverse` from the end. Integers wrap around.
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
// Cumsum: y[i] = x[0] + ... + x[i] along `axis`. With `exclusive` without element i itself; with
// `reverse` from the end. Integers wrap around.
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
// DataPipeline: A handle on an input pipeline: `stages` over sources, in words, each over those
// before it that none has taken (ops/data/examples.hpp); sources take `files` and `tensors`, as
// bytes, in their order, and each stage that calls a function one of `functions`, which are the
// graph's. `prefetch` elements are made ahead.
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
// Dataset: A handle on an input pipeline over (image, label) pairs: from the IDX `files` (images,
// labels), or digits drawn by `digits_seed`. The examples are `limit` (0: all) from `first` on,
// shuffled anew in each epoch through a window of `shuffle` examples (0: in order) by `seed` alone,
// `repeat`ed that many times (-1: for ever). `prefetch` elements are made ahead.
Output dataset(GraphBuilder& g, std::string source, std::vector<DType> types,
    std::vector<PartialShape> shapes, const DatasetOptions& options = {},
    Site site = Site::here());

struct DequeueOptions {
  std::vector<PartialShape> shapes = {};
};
// Dequeue: The tuple whose turn it is, the oldest of a FIFOQueue, which leaves the queue when this
// run commits. Waits while the queue is empty; out_of_range when it is closed and nothing can come
// any more.
std::vector<Output> dequeue(Output handle, std::vector<DType> types,
    const DequeueOptions& options = {}, Site site = Site::here());

struct DequeueManyOptions {
  std::vector<PartialShape> shapes = {};
};
// DequeueMany: `n` elements, stacked along a new dimension 0 (a PaddingFIFOQueue pads them), which
// leave the queue when this run commits. All at once: waits until there are so many, and holds up
// those behind it; out_of_range when the queue is closed and has fewer, which then stay.
// invalid_argument for more than the capacity, and for a queue whose shapes are not known; of 0 it
// gives an empty batch.
std::vector<Output> dequeue_many(Output handle, Output n, std::vector<DType> types,
    const DequeueManyOptions& options = {}, Site site = Site::here());

struct DequeueUpToOptions {
  std::vector<PartialShape> shapes = {};
};
// DequeueUpTo: Like DequeueMany; but of a queue that is closed and has fewer elements it gives
// these, and out_of_range only when there are none.
std::vector<Output> dequeue_up_to(Output handle, Output n, std::vector<DType> types,
    const DequeueUpToOptions& options = {}, Site site = Site::here());

// Digamma: The derivative of Lgamma. At 0 it is an infinity of the other sign; NaN at negative
// integers.
Output digamma(Output x, Site site = Site::here());

// Div: y = a / b; towards zero for integers, of which a zero in b is an error. The inputs
// broadcast.
Output div(const Operand& a, const Operand& b, Site site = Site::here());

// Elu: y = x where x >= 0, else e^x - 1.
Output elu(Output x, Site site = Site::here());

// EluGrad: The gradient of Elu, given its output y.
Output elu_grad(Output dy, Output y, Site site = Site::here());

// Enqueue: Appends one tuple, visible to other runs when this run commits. Waits while the queue is
// full; cancelled once it is closed.
Op enqueue(Output handle, const std::vector<Output>& values, Site site = Site::here());

// EnqueueMany: Appends the rows of `values`, dimension 0, as elements, in order and all at once:
// waits until there is room for all of them. invalid_argument for more than the queue's capacity,
// which no run could put into it; of no rows it does nothing. Else like Enqueue.
Op enqueue_many(Output handle, const std::vector<Output>& values, Site site = Site::here());

// EnsureSameShape: y = x; fails the run where x and like differ in shape, also where one could be
// broadcast to the other. When the graph is built, y is known to have the shape of like. No
// gradient flows to like.
Output ensure_same_shape(Output x, Output like, Site site = Site::here());

// EnsureShape: y = x; fails the run where x has another shape than `shape`, of which dimensions may
// be unknown. When the graph is built, y is known to have it.
Output ensure_shape(Output x, PartialShape shape, Site site = Site::here());

// Equal: y = a == b; a NaN equals nothing. The inputs broadcast.
Output equal(const Operand& a, const Operand& b, Site site = Site::here());

// Erf: The error function.
Output erf(Output x, Site site = Site::here());

// ErfGrad: dx = dy * 2 / sqrt(pi) * exp(-x^2): the gradient of Erf.
Output erf_grad(Output dy, Output x, Site site = Site::here());

// EuclideanNorm: sqrt(sum(x^2)) over all elements, summed in f64 in a fixed tree, without overflow
// of the squares. The gradient of a norm of 0 is 0.
Output euclidean_norm(Output x, Site site = Site::here());

// Exp: y = e^x.
Output exp(Output x, Site site = Site::here());

// ExpandDims: x with a dimension of size 1 at position `axis` of the result; negative counts from
// the end.
Output expand_dims(Output x, std::int64_t axis, Site site = Site::here());

// Expm1: y = exp(x) - 1, exact for small x.
Output expm1(Output x, Site site = Site::here());

struct FIFOQueueOptions {
  std::vector<PartialShape> shapes = {};
  std::int64_t capacity = 32;
  std::string container = "";
  std::string shared_name = "";
};
// FIFOQueue: A handle on a bounded first-in-first-out queue of tuples with the dtypes `types` and,
// when given, the `shapes`. Named like a Variable.
Output fifo_queue(GraphBuilder& g, std::vector<DType> types,
    const FIFOQueueOptions& options = {}, Site site = Site::here());

// Fill: A tensor of shape `dims` (a vector), every element of it the scalar `value`.
Output fill(Output dims, Output value, Site site = Site::here());

// Floor: The largest integer not above x.
Output floor(Output x, Site site = Site::here());

// FloorDiv: y = floor(a / b). A zero in an integer b is an error. The inputs broadcast.
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
// of x. In training m and v are the mean and variance of x and the inputs mean and variance are not
// read; batch_variance is the unbiased one, for moving averages. Else, and where x has no rows,
// they are those inputs, to which no gradient flows.
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
// y[..., i, j, ...] = params[..., indices[i, j], ...]. An index outside is an error.
Output gather(Output params, Output indices, const GatherOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output gather(Output params, Output indices, T axis, Site site = Site::here()) {
  return gather(params, indices, {.axis = axis}, std::move(site));
}

struct GatherAddOptions {
  std::int64_t axis = 0;
};
// GatherAdd: sums, of `shape`, with the slices of dy added where `indices` took them from: sums +
// GatherGrad(...).
Output gather_add(Output sums, Output dy, Output indices, Output shape,
    const GatherAddOptions& options = {}, Site site = Site::here());

struct GatherGradOptions {
  std::int64_t axis = 0;
};
// GatherGrad: The slices of dy added up where `indices` took them from along `axis`, in a tensor of
// `shape`: the gradient of Gather.
Output gather_grad(Output dy, Output indices, Output shape,
    const GatherGradOptions& options = {}, Site site = Site::here());

// GatherNd: y[i, j, ...] = params[indices[i, j, 0], indices[i, j, 1], ..., ...]: the last dimension
// of indices has a part for each of the first dimensions of params. An index outside is an error.
Output gather_nd(Output params, Output indices, Site site = Site::here());

// Greater: y = a > b; false where one is NaN. The inputs broadcast.
Output greater(const Operand& a, const Operand& b, Site site = Site::here());

// GreaterEqual: y = a >= b; false where one is NaN. The inputs broadcast.
Output greater_equal(const Operand& a, const Operand& b, Site site = Site::here());

// HistogramSummary: A serialized Summary protocol buffer with the distribution of all elements of
// x: least, largest, number, sum, sum of squares, and TensorFlow's buckets, each a tenth wider than
// the one before. Fails the run for NaN and infinities, and names the tag and the first such
// element. No elements are an empty histogram.
Output histogram_summary(Output x, std::string tag, Site site = Site::here());

// Identity: y = x.
Output identity(Output x, Site site = Site::here());

struct ImageSummaryOptions {
  std::int64_t max_outputs = 3;
  std::vector<std::int64_t> bad_color = {255, 0, 0, 255};
};
// ImageSummary: A serialized Summary protocol buffer with the first `max_outputs` images of x,
// [batch,height,width,channels], as PNG: gray, RGB or RGBA. Their tags are tag/image/0,
// tag/image/1..., or tag/image where max_outputs is 1. u8 are taken as they are. Floats are scaled
// for each image: from [0,max] to [0,255], or, with a negative one, so that 0 is 128 and the
// largest absolute value 255 or 1. Pixels with a NaN or an infinity have `bad_color`.
Output image_summary(Output x, std::string tag, const ImageSummaryOptions& options = {},
    Site site = Site::here());

// InTopK: y[i]: fewer than k of predictions[i] are above predictions[i, targets[i]], so classes on
// the boundary are all in. False for a row that has an infinity or a NaN, as in TensorFlow; a
// target outside is an error.
Output in_top_k(Output predictions, Output targets, std::int64_t k, Site site = Site::here());

// Invert: The bits that are not in x.
Output invert(Output x, Site site = Site::here());

// IsFinite: True where x is neither infinite nor NaN.
Output is_finite(Output x, Site site = Site::here());

// IsInf: True where x is infinite, of either sign.
Output is_inf(Output x, Site site = Site::here());

// IsNan: True where x is not a number.
Output is_nan(Output x, Site site = Site::here());

// IsVariableInitialized: Whether the variable has a value as of the run's snapshot.
Output is_variable_initialized(Output handle, Site site = Site::here());

// L2Loss: sum(x^2) / 2 over all elements, in a fixed tree.
Output l2_loss(Output x, Site site = Site::here());

struct LayerNormOptions {
  double epsilon = 1e-05;
};
// LayerNorm: y = (x - m) / sqrt(v + epsilon) * scale + offset, where m and v are the mean and the
// variance of each row, the last dimension of x; scale and offset are as long.
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

// LeftShift: x with its bits moved up, zeros behind them. By the width of the type or more, or by a
// negative number: 0. The inputs broadcast.
Output left_shift(const Operand& x, const Operand& bits, Site site = Site::here());

// Less: y = a < b; false where one is NaN. The inputs broadcast.
Output less(const Operand& a, const Operand& b, Site site = Site::here());

// LessEqual: y = a <= b; false where one is NaN. The inputs broadcast.
Output less_equal(const Operand& a, const Operand& b, Site site = Site::here());

// Lgamma: The logarithm of the absolute value of the gamma function; inf at 0 and at negative
// integers.
Output lgamma(Output x, Site site = Site::here());

struct LinearRecurrenceOptions {
  std::int64_t axis = 0;
  bool reverse = false;
  bool behind = false;
};
// LinearRecurrence: y[i] = a[i] * y[i - 1] + b[i] along `axis`, from 0; with `reverse` from the
// end. With `behind` the factor is a[i - 1]. Where a factor is 0 it begins anew with b[i], whatever
// was before. The gradient of Cumprod is made of it.
Output linear_recurrence(Output a, Output b, const LinearRecurrenceOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output linear_recurrence(Output a, Output b, T axis, Flag reverse = false, Flag behind = false,
    Site site = Site::here()) {
  return linear_recurrence(a, b, {.axis = axis, .reverse = reverse, .behind = behind},
    std::move(site));
}

// ListAddN: The sums of the elements of one or more lists of one length, added from left to right;
// those of f16 and bf16 in f32, rounded once.
Output list_add_n(const std::vector<Output>& values, Site site = Site::here());

struct ListEmptyOptions {
  PartialShape shape = PartialShape();
};
// ListEmpty: A list without elements, for elements of type T and of shapes that `shape` accepts.
Output list_empty(GraphBuilder& g, DType dtype, const ListEmptyOptions& options = {},
    Site site = Site::here());

struct ListGetOptions {
  PartialShape shape = PartialShape();
};
// ListGet: The element at `index`, of type T and of a shape that `shape` accepts. An index outside
// of the list is an error.
Output list_get(Output list, Output index, DType dtype, const ListGetOptions& options = {},
    Site site = Site::here());

// ListGetAdd: sums with dy added to its element at `index`: sums + ListGetGrad(...).
Output list_get_add(Output sums, Output dy, Output index, Output like, Site site = Site::here());

// ListGetGrad: Zeros in the form of the elements of `like`, but for dy at `index`: the gradient of
// ListGet.
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
// ListPop: The list without its last element, and that element, which is of type T and of a shape
// that `shape` accepts.
ListPopOutputs list_pop(Output list, DType dtype, const ListPopOptions& options = {},
    Site site = Site::here());

// ListPush: The list with `value` behind its elements. No element is copied.
Output list_push(Output before, Output value, Site site = Site::here());

// ListSet: The list with `value` in the place of its element at `index`, or behind all where that
// is how many there are. Another index is an error.
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
// dimension, of which there are `length` unless that is negative. Of an empty list the shape of
// elements must be known, from the list or from `shape`.
Output list_stack(Output list, DType dtype, const ListStackOptions& options = {},
    Site site = Site::here());

// ListUnstack: The slices of x along its first dimension, which share its memory.
Output list_unstack(Output x, Site site = Site::here());

// ListUnstackGrad: The elements of the list stacked to a tensor of that shape: the gradient of
// ListUnstack.
Output list_unstack_grad(Output dlist, Output shape, DType dtype, Site site = Site::here());

// ListZerosLike: A list of zeros in the form of the elements. They take no memory.
Output list_zeros_like(Output list, Site site = Site::here());

// Log: y = natural logarithm of x; -inf at 0, NaN below.
Output log(Output x, Site site = Site::here());

// Log1p: y = log(1 + x), exact for small x.
Output log1p(Output x, Site site = Site::here());

struct LogMatrixDeterminantOutputs {
  Output sign;
  Output log_abs;
};
// LogMatrixDeterminant: The sign (1, 0 or -1) of the determinants of square matrices and the
// logarithm of their absolute value, which neither overflows nor vanishes; of a singular matrix 0
// and -inf. The gradient of log_abs is the transposed inverse.
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
// LstmCell: One step of an LSTM over c [batch,hidden]. The quarters of x + r [batch,4 hidden] make
// the gates i, f, g and o: tanh for g, sigmoid for the others. next = f c + i g, h = o tanh(next).
LstmCellOutputs lstm_cell(Output x, Output r, Output c, Site site = Site::here());

struct LstmCellGradOutputs {
  Output slopes;
  Output dc;
};
// LstmCellGrad: The gradient of LstmCell, given its outputs gates and next: for x, which is that
// for r, and for c.
LstmCellGradOutputs lstm_cell_grad(Output dh, Output dnext, Output gates, Output c, Output next,
    Site site = Site::here());

struct LstmSequenceOutputs {
  Output h;
  Output next;
  Output gates;
};
// LstmSequence: LstmCell over x [steps,batch,4 hidden], from the state h0 and c0 [batch,hidden]:
// each step's r is the product of the h before it and r [hidden,4 hidden]. The outputs are those of
// all steps. With steps = -1 as many as x has.
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

struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
// MatMul: The matrix product of a [m,k] and b [k,n]; transpose_a and transpose_b say that an
// operand is stored transposed. k = 0 gives zeros. f16 and bf16 are summed in f32 and rounded once;
// on AVX-512, subnormal elements and sums of bf16 count as 0. Integers wrap around.
Output mat_mul(Output a, Output b, const MatMulOptions& options = {}, Site site = Site::here());

// MatrixBandPart: x, with zeros (false) outside of the diagonal, `lower` diagonals below and
// `upper` ones above it; all of them when negative: (-1, 0) is the lower triangle. Of each matrix
// in the last two dimensions.
Output matrix_band_part(Output x, std::int64_t lower, std::int64_t upper,
    Site site = Site::here());

// MatrixDeterminant: The determinants of square matrices: [..., n, n] gives [...]. That of a 0 x 0
// matrix is 1. The gradient needs the inverse: that of a singular matrix is an error.
Output matrix_determinant(Output x, Site site = Site::here());

// MatrixDiag: Square matrices with the last dimension of x on the diagonal and zeros (false)
// elsewhere: [..., n] gives [..., n, n].
Output matrix_diag(Output x, Site site = Site::here());

// MatrixDiagPart: The diagonals of matrices: [..., m, n] gives [..., min(m, n)].
Output matrix_diag_part(Output x, Site site = Site::here());

// MatrixDiagPartGrad: The gradient of MatrixDiagPart: zeros in the shape of x, with dy on the
// diagonals.
Output matrix_diag_part_grad(Output dy, Output x, Site site = Site::here());

// MatrixInverse: The inverses of square matrices, [..., n, n]. A singular matrix is an error; one
// with elements that are not finite gives NaN.
Output matrix_inverse(Output x, Site site = Site::here());

struct MatrixSolveOptions {
  bool adjoint = false;
};
// MatrixSolve: x of a x = b, or with `adjoint` of a^T x = b, for matrices a [..., n, n] and b [...,
// n, k] of one batch. A singular a is an error; one with elements that are not finite gives NaN.
Output matrix_solve(Output a, Output b, const MatrixSolveOptions& options = {},
    Site site = Site::here());

struct MatrixSolveLsOptions {
  double l2_regularizer = 0;
};
// MatrixSolveLs: The x of the least |a x - b|^2 + l2_regularizer |x|^2, column by column, for
// matrices a [..., m, n] and b [..., m, k] of one batch; where a x = b has many solutions since m <
// n, the shortest. Computed in f64. An a that has not full rank is an error unless l2_regularizer
// is positive; one with elements that are not finite gives NaN.
Output matrix_solve_ls(Output a, Output b, const MatrixSolveLsOptions& options = {},
    Site site = Site::here());

// MatrixTranspose: The last two dimensions exchanged: [..., m, n] gives [..., n, m]. Their number
// need not be known.
Output matrix_transpose(Output x, Site site = Site::here());

struct MatrixTriangularSolveOptions {
  bool lower = true;
  bool adjoint = false;
};
// MatrixTriangularSolve: As MatrixSolve, where a is a lower (or upper) triangle: what is on the
// other side of the diagonal is not read. A 0 on the diagonal is an error.
Output matrix_triangular_solve(Output a, Output b,
    const MatrixTriangularSolveOptions& options = {}, Site site = Site::here());

struct MaxOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Max: The maximum, NaN where there is one; of no elements -inf or the lowest integer. Equal maxima
// share the gradient equally. Over the dimensions `axes`, all of them when the list is empty;
// keep_dims leaves them as dimensions of size 1.
Output max(Output x, const MaxOptions& options = {}, Site site = Site::here());
template <class = void>
Output max(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return max(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

struct MaxPoolOptions {
  std::string padding = "VALID";  // SAME, VALID
};
// MaxPool: The largest element of each window over height and width of x [n,h,w,c]; ksize and
// strides are [h,w] or [1,h,w,1]. Padding never wins. NaN does.
Output max_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    const MaxPoolOptions& options = {}, Site site = Site::here());
template <class = void>
Output max_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    std::string padding, Site site = Site::here()) {
  return max_pool(x, ksize, strides, {.padding = padding}, std::move(site));
}

struct MaxPoolGradOptions {
  std::string padding = "VALID";  // SAME, VALID
};
// MaxPoolGrad: The gradient of MaxPool, given its input x and output y. Of equal maxima the first
// in window order, row by row, takes all of dy.
Output max_pool_grad(Output x, Output y, Output dy, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const MaxPoolGradOptions& options = {},
    Site site = Site::here());

struct MaxPoolPickOptions {
  std::string padding = "VALID";  // SAME, VALID
};
// MaxPoolPick: For each window of MaxPool, with its input x and output y, the element of d where
// the first maximum of x stands: the gradient of MaxPoolGrad for dy.
Output max_pool_pick(Output x, Output y, Output d, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const MaxPoolPickOptions& options = {},
    Site site = Site::here());
template <class = void>
Output max_pool_pick(Output x, Output y, Output d, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, std::string padding, Site site = Site::here()) {
  return max_pool_pick(x, y, d, ksize, strides, {.padding = padding}, std::move(site));
}

// Maximum: The larger of a and b; NaN where one is NaN. Where they are equal, the gradient goes to
// both in equal parts. The inputs broadcast.
Output maximum(const Operand& a, const Operand& b, Site site = Site::here());

struct MeanOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Mean: The mean; NaN of no elements. Over the dimensions `axes`, all of them when the list is
// empty; keep_dims leaves them as dimensions of size 1.
Output mean(Output x, const MeanOptions& options = {}, Site site = Site::here());
template <class = void>
Output mean(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return mean(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// MergeSummary: One serialized Summary protocol buffer with the values of all of them, which may
// have any shape. Fails the run for bytes that are no Summary, and for a tag that is there twice.
Output merge_summary(const std::vector<Output>& summaries, Site site = Site::here());

struct MinOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Min: The minimum, NaN where there is one; of no elements inf or the highest integer. Equal minima
// share the gradient equally. Over the dimensions `axes`, all of them when the list is empty;
// keep_dims leaves them as dimensions of size 1.
Output min(Output x, const MinOptions& options = {}, Site site = Site::here());
template <class = void>
Output min(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return min(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// Minimum: The smaller of a and b; NaN where one is NaN. Where they are equal, the gradient goes to
// both in equal parts. The inputs broadcast.
Output minimum(const Operand& a, const Operand& b, Site site = Site::here());

// Mod: y = a - b * floor(a / b), which has the sign of b. A zero in an integer b is an error. The
// inputs broadcast.
Output mod(const Operand& a, const Operand& b, Site site = Site::here());

// MoveAverages: A part of training steps: writes that are training_only and come before it, or are
// in functions that nodes before it run, are parts of the step, too.
Op move_averages(GraphBuilder& g, Site site = Site::here());

// Mul: y = a * b. Integers wrap around. The inputs broadcast.
Output mul(const Operand& a, const Operand& b, Site site = Site::here());

struct MutexOptions {
  std::string container = "";
  std::string shared_name = "";
};
// Mutex: A handle on a mutex, which one run at a time holds. Named like a Variable. It has no
// contents: checkpoints leave it out.
Output mutex(GraphBuilder& g, const MutexOptions& options = {}, Site site = Site::here());

// MutexAcquire: Holds the mutex for this run. A run takes all mutexes that its nodes may acquire,
// those in branches included, before it begins: it waits for them in the order in which runs came,
// up to its deadline, and reads variables as of after that. So runs do not deadlock over mutexes,
// and runs that hold one do not have to be done again for each other. The mutex is free when the
// run ends, however it does. failed_precondition when the run has acquired it before and not
// released it.
Op mutex_acquire(Output handle, Site site = Site::here());

// MutexRelease: Ends what MutexAcquire began, so that the run may acquire the mutex again. Other
// runs get it when this run ends: not before then do they see what it wrote. failed_precondition
// when the run has not acquired the mutex.
Op mutex_release(Output handle, Site site = Site::here());

// Neg: y = -x. Integers wrap around.
Output neg(Output x, Site site = Site::here());

// NextElement: The dataset's element of this run and replica; out_of_range past the end. In a loop
// the next one each time.
std::vector<Output> next_element(Output handle, std::vector<PartialShape> shapes,
    std::vector<DType> types, Site site = Site::here());

// NoOp: Nothing: a place for control edges.
Op no_op(GraphBuilder& g, Site site = Site::here());

// NotEqual: y = a != b; a NaN differs from everything. The inputs broadcast.
Output not_equal(const Operand& a, const Operand& b, Site site = Site::here());

struct OneHotOptions {
  DType dtype = DType::f32;
  double on = 1;
  double off = 0;
};
// OneHot: A new last dimension of size `depth`: `on` at the index, `off` elsewhere; all off for an
// index outside.
Output one_hot(Output indices, std::int64_t depth, const OneHotOptions& options = {},
    Site site = Site::here());

// OnesLike: Ones (true) of the shape and type of x.
Output ones_like(Output x, Site site = Site::here());

struct PackOptions {
  std::int64_t axis = 0;
};
// Pack: The values, all of one shape, stacked along a new dimension at `axis`.
Output pack(const std::vector<Output>& values, const PackOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output pack(const std::vector<Output>& values, T axis, Site site = Site::here()) {
  return pack(values, {.axis = axis}, std::move(site));
}

struct PadOptions {
  double value = 0;
};
// Pad: x in a frame of `value`. The list gives how much goes before and after, dimension by
// dimension: [before0, after0, before1, after1, ...].
Output pad(Output x, std::vector<std::int64_t> paddings, const PadOptions& options = {},
    Site site = Site::here());

struct PaddingFIFOQueueOptions {
  std::int64_t capacity = 32;
  std::string container = "";
  std::string shared_name = "";
};
// PaddingFIFOQueue: A FIFOQueue of elements that may differ in the dimensions that `shapes` leaves
// unknown; their ranks are known. DequeueMany and DequeueUpTo pad each component at the end, to the
// longest of the batch in each dimension, with zeros or empty strings.
Output padding_fifo_queue(GraphBuilder& g, std::vector<DType> types,
    std::vector<PartialShape> shapes, const PaddingFIFOQueueOptions& options = {},
    Site site = Site::here());

// Polygamma: The n-th derivative of Digamma, n from 0 to 100. At 0 and at negative integers inf for
// an odd n, else NaN.
Output polygamma(Output x, std::int64_t n, Site site = Site::here());

// Pow: y = a^b. For integers b must not be negative. The gradient with respect to b is 0 where a <=
// 0. The inputs broadcast.
Output pow(const Operand& a, const Operand& b, Site site = Site::here());

// PowGradBase: da = dy * b * a^(b-1), 0 where b is 0, in the broadcast shape of a and b (dy's).
Output pow_grad_base(Output dy, Output a, Output b, Site site = Site::here());

// PowGradExponent: db = dy * y * log(a), 0 where a <= 0, in the broadcast shape of a and b (dy's).
Output pow_grad_exponent(Output dy, Output y, Output a, Site site = Site::here());

struct PrintOptions {
  std::string message = "";
  std::int64_t limit = 8;
};
// Print: y = x; writes the message and at most `limit` elements to stderr on the way.
Output print(Output x, const PrintOptions& options = {}, Site site = Site::here());

struct PriorityQueueOptions {
  std::vector<PartialShape> shapes = {};
  std::int64_t capacity = 32;
  std::string container = "";
  std::string shared_name = "";
};
// PriorityQueue: A handle on a bounded queue that gives the element with the lowest priority first,
// and of equal ones the oldest; else like FIFOQueue. Component 0 of an element is its priority, an
// i64 scalar: `types` begins with i64. A run gets the lowest of the elements that are committed, or
// its own, and that no other run has taken when it is answered.
Output priority_queue(GraphBuilder& g, std::vector<DType> types,
    const PriorityQueueOptions& options = {}, Site site = Site::here());

struct ProdOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Prod: The product. Integers wrap around. Over the dimensions `axes`, all of them when the list is
// empty; keep_dims leaves them as dimensions of size 1.
Output prod(Output x, const ProdOptions& options = {}, Site site = Site::here());
template <class = void>
Output prod(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return prod(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

struct ProdGradOptions {
  std::vector<std::int64_t> axes = {};
};
// ProdGrad: dx = dy * the product of the other elements, exact with zeros: the gradient of Prod.
Output prod_grad(Output dy, Output x, const ProdGradOptions& options = {},
    Site site = Site::here());

struct ProdGradAlongOptions {
  std::vector<std::int64_t> axes = {};
};
// ProdGradAlong: dx = dy * the derivative, along one tangent after the other, of the product of the
// other elements, exact with zeros: higher derivatives of Prod. Tangents are shaped like x; there
// are at most 8.
Output prod_grad_along(Output dy, Output x, const std::vector<Output>& tangents,
    const ProdGradAlongOptions& options = {}, Site site = Site::here());

struct QrOptions {
  bool full_matrices = false;
};
struct QrOutputs {
  Output q;
  Output r;
};
// Qr: x = q r for matrices [..., m, n]: orthonormal columns q [..., m, k] and an upper triangle r
// [..., k, n] whose diagonal is not negative, k the smaller of m and n, or m with full_matrices.
// Computed in f64. NaN for elements that are not finite. The gradient takes the first k columns to
// be independent and needs k = n, or m < n known before the run.
QrOutputs qr(Output x, const QrOptions& options = {}, Site site = Site::here());

struct QueueCloseOptions {
  bool cancel_pending = false;
};
// QueueClose: No element enters any more, once those that wait have, or at once and cancelling them
// with `cancel_pending`. cancelled when the queue is closed already.
Op queue_close(Output handle, const QueueCloseOptions& options = {}, Site site = Site::here());

// QueueSize: How many elements the queue holds as of the run's snapshot.
Output queue_size(Output handle, Site site = Site::here());

// RandomGamma: Numbers of gamma distributions of shape alpha and scale 1, one for each element:
// broadcast alpha for more, and divide by a rate. What is too small for the type, as much is for an
// alpha near 0, is 0. An alpha that is not positive and finite is an error. New values in each run,
// the same for the same seed, node name and run.
Output random_gamma(Output alpha, Site site = Site::here());

// RandomOrder: The numbers from 0 up to the first dimension of `like`, without it, in a random
// order: indices for Gather. New values in each run, the same for the same seed, node name and run.
Output random_order(Output like, Site site = Site::here());

// RandomPoisson: Numbers of Poisson distributions with the mean `rate`, one for each element:
// broadcast rate for more. 0 for a rate of 0; the nearest normal distribution for one of 1e10 and
// more. A rate that is negative or not finite is an error. New values in each run, the same for the
// same seed, node name and run.
Output random_poisson(Output rate, Site site = Site::here());

struct RandomShuffleQueueOptions {
  std::vector<PartialShape> shapes = {};
  std::int64_t capacity = 32;
  std::int64_t min_after_dequeue = 0;
  std::int64_t seed = 0;
  std::string container = "";
  std::string shared_name = "";
};
// RandomShuffleQueue: A handle on a bounded queue that gives its elements in a random order; else
// like FIFOQueue. While it is open, a run that takes elements leaves `min_after_dequeue` others.
// Which ones it gets depends on `seed`, the queue's name, the commit before the run and what the
// queue holds: a run that is done again, also after a restart, gets the same. Where several
// elements are put or taken at once, the capacity must be at least `min_after_dequeue` and both
// numbers together, or those who put and those who take may wait for each other.
Output random_shuffle_queue(GraphBuilder& g, std::vector<DType> types,
    const RandomShuffleQueueOptions& options = {}, Site site = Site::here());

struct RandomStandardNormalOptions {
  DType dtype = DType::f32;
  double mean = 0;
  double stddev = 1;
};
// RandomStandardNormal: Normal numbers, of mean 0 and standard deviation 1 unless told. New values
// in each run, the same for the same seed, node name and run.
Output random_standard_normal(GraphBuilder& g, PartialShape shape,
    const RandomStandardNormalOptions& options = {}, Site site = Site::here());

struct RandomStandardNormalLikeOptions {
  double mean = 0;
  double stddev = 1;
};
// RandomStandardNormalLike: Normal numbers, of mean 0 and standard deviation 1 unless told, as many
// as `like` has. New values in each run, the same for the same seed, node name and run.
Output random_standard_normal_like(Output like,
    const RandomStandardNormalLikeOptions& options = {}, Site site = Site::here());

struct RandomUniformOptions {
  DType dtype = DType::f32;
  double low = 0;
  double high = 1;
};
// RandomUniform: Uniform numbers in [low, high). New values in each run, the same for the same
// seed, node name and run.
Output random_uniform(GraphBuilder& g, PartialShape shape,
    const RandomUniformOptions& options = {}, Site site = Site::here());

struct RandomUniformIntOptions {
  DType dtype = DType::i64;
  std::int64_t low = 0;
};
// RandomUniformInt: Uniform integers in [low, high). New values in each run, the same for the same
// seed, node name and run.
Output random_uniform_int(GraphBuilder& g, PartialShape shape, std::int64_t high,
    const RandomUniformIntOptions& options = {}, Site site = Site::here());

struct RandomUniformLikeOptions {
  double low = 0;
  double high = 1;
};
// RandomUniformLike: Uniform numbers in [low, high), as many as `like` has. New values in each run,
// the same for the same seed, node name and run.
Output random_uniform_like(Output like, const RandomUniformLikeOptions& options = {},
    Site site = Site::here());

// Range: The vector start, start + delta, ... up to but without limit. Scalars; delta may be
// negative but not 0. No gradient flows to limit.
Output range(Output start, Output limit, Output delta, Site site = Site::here());

struct RankOptions {
  DType out_type = DType::i64;
};
// Rank: The number of dimensions of x, in host memory.
Output rank(Output x, const RankOptions& options = {}, Site site = Site::here());

// ReadVariable: The variable's value as of the run's snapshot, or, ordered after a write of its own
// run, what that write leaves. failed_precondition when it is uninitialised.
Output read_variable(Output handle, DType dtype, Site site = Site::here());

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

// ReplicaMean: The mean of a value over the replicas of a step, which is one for all of them: of
// one input that value itself, with N replicas the mean of the N copies.
Output replica_mean(const std::vector<Output>& parts, Site site = Site::here());

// Reshape: The elements of x, in their order, under another shape. One dimension may be -1: it
// follows from the number of elements.
Output reshape(Output x, Output shape, Site site = Site::here());

struct ResizeOptions {
  std::string method = "bilinear";  // nearest, bilinear
};
// Resize: Images x [n,h,w,c] of another size, [height, width]. Pixel i of n pixels has its centre
// at (i + 1/2) / n of the image: what TensorFlow 2 does, and PyTorch with align_corners = False
// (nearest: its nearest-exact). bilinear takes the two pixels around that place in each direction,
// without smoothing when an image shrinks; nearest the one that it lies in.
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
// Restore: The tensors `names` of the files that Save wrote under `prefix`; not_found for a name
// that is not there, invalid_argument for another dtype or shape.
std::vector<Output> restore(Output prefix, std::vector<std::string> names,
    std::vector<DType> types, const RestoreOptions& options = {}, Site site = Site::here());

struct ReverseOptions {
  std::vector<std::int64_t> axes = {};
};
// Reverse: x with the order along `axes` turned around; along all of them when the list is empty.
Output reverse(Output x, const ReverseOptions& options = {}, Site site = Site::here());
template <class = void>
Output reverse(Output x, Ints axes, Site site = Site::here()) {
  return reverse(x, {.axes = axes}, std::move(site));
}

struct ReverseSequenceOptions {
  std::int64_t axis = 1;
  std::int64_t batch_axis = 0;
};
// ReverseSequence: x with the first lengths[i] slices along `axis` of slice i along batch_axis the
// other way round; those behind them stay where they are.
Output reverse_sequence(Output x, Output lengths, const ReverseSequenceOptions& options = {},
    Site site = Site::here());
template <Integer T>
Output reverse_sequence(Output x, Output lengths, T axis, std::int64_t batch_axis = 0,
    Site site = Site::here()) {
  return reverse_sequence(x, lengths, {.axis = axis, .batch_axis = batch_axis}, std::move(site));
}

// RightShift: x with its bits moved down; the sign stays. By the width of the type or more, or by a
// negative number: -1 for a negative x, else 0. The inputs broadcast.
Output right_shift(const Operand& x, const Operand& bits, Site site = Site::here());

// Roll: y[(i + shift) mod n] = x[i] along each of `axes`: what is moved over the end comes in at
// the beginning. The shifts of an axis that is named twice add up.
Output roll(Output x, std::vector<std::int64_t> shift, std::vector<std::int64_t> axes,
    Site site = Site::here());

// Round: The nearest integer, halves to the even one.
Output round(Output x, Site site = Site::here());

// Rsqrt: y = 1 / sqrt(x).
Output rsqrt(Output x, Site site = Site::here());

// RsqrtGrad: dx = -dy * y^3 / 2: the gradient of Rsqrt.
Output rsqrt_grad(Output dy, Output y, Site site = Site::here());

// Save: Writes the tensors under their `names` to `prefix`.safetensors, once the run is committed:
// a run that fails leaves an older file as it was.
Op save(Output prefix, const std::vector<Output>& tensors, std::vector<std::string> names,
    Site site = Site::here());

// ScalarSummary: A serialized Summary protocol buffer with the elements of x as numbers (f32),
// which event files keep and TensorBoard draws as curves. `tags` are their names, one for each
// element, all different. NaN and infinities are kept.
Output scalar_summary(Output x, std::vector<std::string> tags, Site site = Site::here());

// ScaleRows: y[i, ...] = x[i, ...] * scale[i], where scale has the first dimensions of x, one or
// more or none: the gradient of a loss per row. Of a row that is scaled by 0 everything is 0, what
// is infinite or NaN, too.
Output scale_rows(Output x, Output scale, Site site = Site::here());

struct ScatterAddOptions {
  std::int64_t replicas = 1;
};
// ScatterAdd: var[indices[i], ...] += rows[i, ...], one after the other, those of each replica in
// turn. An index outside is an error.
Op scatter_add(Output var, Output indices, Output rows, const ScatterAddOptions& options = {},
    Site site = Site::here());

struct ScatterAlongOptions {
  std::int64_t axis = -1;
};
// ScatterAlong: The elements of dy added up, in their order, where `indices` took them from along
// `axis`, in a tensor of `shape`: the gradient of TakeAlong.
Output scatter_along(Output dy, Output indices, Output shape,
    const ScatterAlongOptions& options = {}, Site site = Site::here());

// ScatterNd: Zeros of `shape` with the slices of updates added, in their order, at the indices that
// GatherNd would take them from. An index outside is an error.
Output scatter_nd(Output indices, Output updates, Output shape, Site site = Site::here());

struct ScatterSubOptions {
  std::int64_t replicas = 1;
};
// ScatterSub: var[indices[i], ...] -= rows[i, ...], one after the other, those of each replica in
// turn. An index outside is an error.
Op scatter_sub(Output var, Output indices, Output rows, const ScatterSubOptions& options = {},
    Site site = Site::here());

struct ScatterUpdateOptions {
  std::int64_t replicas = 1;
};
// ScatterUpdate: var[indices[i], ...] = rows[i, ...]: of several rows for one place the last one
// stays, and of several replicas that of the last one. An index outside is an error.
Op scatter_update(Output var, Output indices, Output rows,
    const ScatterUpdateOptions& options = {}, Site site = Site::here());

struct SearchSortedOptions {
  bool right = false;
};
// SearchSorted: How many elements of the ascending last dimension of sequence are below each value,
// with `right` how many are not above it. A vector serves all values; else the other dimensions are
// equal. A NaN is above all numbers. A sequence that is not sorted is an error.
Output search_sorted(Output sequence, Output values, const SearchSortedOptions& options = {},
    Site site = Site::here());

// SegmentMax: y[s] = the maximum of the slices of data whose id is s, NaN where there is one; 0
// without any. Equal maxima share the gradient equally. The ids, one for each slice data[i, ...],
// ascend, and the last one says how many segments there are; others are an error.
Output segment_max(Output data, Output segment_ids, Site site = Site::here());

// SegmentMean: y[s] = the mean of the slices of data whose id is s; 0 without any. The ids, one for
// each slice data[i, ...], ascend, and the last one says how many segments there are; others are an
// error.
Output segment_mean(Output data, Output segment_ids, Site site = Site::here());

// SegmentMin: y[s] = the minimum of the slices of data whose id is s, NaN where there is one; 0
// without any. Equal minima share the gradient equally. The ids, one for each slice data[i, ...],
// ascend, and the last one says how many segments there are; others are an error.
Output segment_min(Output data, Output segment_ids, Site site = Site::here());

// SegmentProd: y[s] = the product of the slices of data whose id is s; 1 without any. The gradient
// is exact with zeros. The ids, one for each slice data[i, ...], ascend, and the last one says how
// many segments there are; others are an error.
Output segment_prod(Output data, Output segment_ids, Site site = Site::here());

// SegmentSum: y[s] = the sum of the slices of data whose id is s; 0 without any. The ids, one for
// each slice data[i, ...], ascend, and the last one says how many segments there are; others are an
// error.
Output segment_sum(Output data, Output segment_ids, Site site = Site::here());

// Select: a where the condition holds, else b. All three broadcast. The gradient of the side that
// is not taken is 0; where that side was computed with an infinite slope, as log(x) at 0, 0 * inf
// makes it NaN further back. Choose its argument first: select(x > 0, log(select(x > 0, x, 1)), 0).
Output select(Output condition, const Operand& a, const Operand& b, Site site = Site::here());

struct SelfAdjointEigOutputs {
  Output e;
  Output v;
};
// SelfAdjointEig: (x + x^T) / 2 = v diag(e) v^T for matrices [..., n, n], of x itself, which should
// be symmetric: eigenvalues e [..., n] in ascending order and orthonormal columns v [..., n, n], of
// each of which the first element of at least half the largest one's size is positive. Computed in
// f64. NaN for elements that are not finite. Eigenvectors have no gradient where eigenvalues are
// equal: nothing flows through them there.
SelfAdjointEigOutputs self_adjoint_eig(Output x, Site site = Site::here());

struct ShapeOptions {
  DType out_type = DType::i64;
};
// Shape: The dimensions of x, a vector in host memory.
Output shape(Output x, const ShapeOptions& options = {}, Site site = Site::here());

struct ShiftOptions {
  std::int64_t axis = 0;
};
// Shift: y[i + by] = x[i] along `axis`: what is moved over the end is gone, and zeros (false) come
// in.
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

// Sign: y = 1, 0 or -1 as x is positive, zero or negative; NaN stays NaN.
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

// Slice: The block of x that starts at `begin` and has `size` elements along each dimension; -1
// means the rest.
Output slice(Output x, Output begin, Output size, Site site = Site::here());

// SliceAdd: sums, of `shape`, with dy added to the block at `begin`: sums + SliceGrad(...).
Output slice_add(Output sums, Output dy, Output begin, Output shape, Site site = Site::here());

// SliceGrad: Zeros of `shape` with dy placed at `begin`: the gradient of Slice.
Output slice_grad(Output dy, Output begin, Output shape, Site site = Site::here());

// Softmax: y = e^logits / sum(e^logits) over the last dimension, without overflow.
Output softmax(Output logits, Site site = Site::here());

struct SoftmaxCrossEntropyWithLogitsOutputs {
  Output loss;
  Output backprop;
};
// SoftmaxCrossEntropyWithLogits: loss [...] of logits [...,C] against probabilities [...,C], one
// for each row; backprop is d loss / d logits. No gradient flows to the labels.
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
// Sort: The elements along `axis` in ascending or descending order, and where they stood. Equal
// elements keep their order, and -0 equals 0; a NaN is above all numbers, as NumPy sorts.
SortOutputs sort(Output x, const SortOptions& options = {}, Site site = Site::here());
template <Integer T>
SortOutputs sort(Output x, T axis, Flag descending = false, Site site = Site::here()) {
  return sort(x, {.axis = axis, .descending = descending}, std::move(site));
}

struct SparseSoftmaxCrossEntropyWithLogitsOutputs {
  Output loss;
  Output backprop;
};
// SparseSoftmaxCrossEntropyWithLogits: loss [...] of logits [...,C] against class numbers [...],
// one for each row; backprop is d loss / d logits. A label outside [0, C) is invalid_argument.
SparseSoftmaxCrossEntropyWithLogitsOutputs sparse_softmax_cross_entropy_with_logits(
    Output logits, Output labels, Site site = Site::here());

struct SplitOptions {
  std::int64_t axis = 0;
  std::vector<std::int64_t> sizes = {};
};
// Split: x cut along `axis` into N parts, equal ones or of the given sizes.
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
// Spread: dy, the result of a reduction over `axes` of a tensor of `shape` (with or without the
// reduced dimensions), repeated along them; divided by their size for `mean`. The gradient of Sum
// and Mean.
Output spread(Output dy, Output shape, const SpreadOptions& options = {},
    Site site = Site::here());

// Sqrt: y = sqrt(x); NaN below 0. The gradient at 0 is inf.
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
// Squeeze: x without the dimensions `axes`, which must be 1; without any dimension of size 1 when
// the list is empty.
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
// StridedSlice: Dimension by dimension the elements begin, begin + stride, ... before end; from the
// end where negative, and as far as there are any. Bit i of a mask says of entry i: begin_mask and
// end_mask, that its range has no bound there; shrink_axis_mask, that it is one index, `begin`,
// which must be there and whose dimension goes; new_axis_mask, that it is a new dimension of size
// 1; ellipsis_mask (one bit), that it is all dimensions that no other entry takes. Dimensions after
// the last entry are taken whole. An ellipsis goes before a new dimension, that before an index.
Output strided_slice(Output x, Output begin, Output end, Output strides,
    const StridedSliceOptions& options = {}, Site site = Site::here());

struct StridedSliceAddOptions {
  std::int64_t begin_mask = 0;
  std::int64_t end_mask = 0;
  std::int64_t ellipsis_mask = 0;
  std::int64_t new_axis_mask = 0;
  std::int64_t shrink_axis_mask = 0;
};
// StridedSliceAdd: sums, of `shape`, with dy added where StridedSlice takes elements from: sums +
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
// StridedSliceGrad: Zeros of `shape` with dy where StridedSlice takes elements from: its gradient.
Output strided_slice_grad(Output dy, Output shape, Output begin, Output end, Output strides,
    const StridedSliceGradOptions& options = {}, Site site = Site::here());

struct StringHashOptions {
  std::int64_t seed = 0;
};
// StringHash: A number in [0, buckets) for each text of x: its hash, the same in every program and
// on every machine. Texts that differ may have one number.
Output string_hash(Output x, std::int64_t buckets, const StringHashOptions& options = {},
    Site site = Site::here());

struct StringJoinOptions {
  std::string separator = "";
};
// StringJoin: Element by element the values one after another, with `separator` between them.
// Scalars stand beside every element of the others, which have one shape.
Output string_join(const std::vector<Output>& values, const StringJoinOptions& options = {},
    Site site = Site::here());

struct StringSplitOptions {
  std::string separator = "";
};
struct StringSplitOutputs {
  Output parts;
  Output lengths;
};
// StringSplit: The parts of each text of x between separators, one text after the other, and how
// many each has. Two separators in a row have an empty part between them. Without a separator: the
// words between blanks, none of them empty.
StringSplitOutputs string_split(Output x, const StringSplitOptions& options = {},
    Site site = Site::here());

struct StringToNumberOptions {
  DType out_type = DType::f32;
};
// StringToNumber: The number that each text of x says, decimal, with blanks around it or not; a
// text that says none, or one that the type cannot hold, is an error.
Output string_to_number(Output x, const StringToNumberOptions& options = {},
    Site site = Site::here());

// Sub: y = a - b. Integers wrap around. The inputs broadcast.
Output sub(const Operand& a, const Operand& b, Site site = Site::here());

struct SumOptions {
  std::vector<std::int64_t> axes = {};
  bool keep_dims = false;
};
// Sum: The sum. Integers wrap around. Over the dimensions `axes`, all of them when the list is
// empty; keep_dims leaves them as dimensions of size 1.
Output sum(Output x, const SumOptions& options = {}, Site site = Site::here());
template <class = void>
Output sum(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return sum(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// SumToShape: x summed over the dimensions along which `shape` would be stretched to x's: the
// gradient of a broadcast.
Output sum_to_shape(Output x, PartialShape shape, Site site = Site::here());

// SumToShapeOf: SumToShape with the shape of `like`, whose values do not matter.
Output sum_to_shape_of(Output x, Output like, Site site = Site::here());

struct SvdOutputs {
  Output s;
  Output u;
  Output v;
};
// Svd: x = u diag(s) v^T for matrices [..., m, n]: singular values s [..., k] in descending order,
// k the smaller of m and n, and orthonormal columns u [..., m, k] and v [..., n, k]. Of each column
// of u, the first element of at least half the largest one's size is positive. Computed in f64, by
// Jacobi's method. NaN for elements that are not finite. Singular vectors have no gradient where
// singular values are equal, or 0: nothing flows through them there.
SvdOutputs svd(Output x, Site site = Site::here());

struct TakeAlongOptions {
  std::int64_t axis = -1;
};
// TakeAlong: y[.., i, ..] = x[.., indices[.., i, ..], ..]: elements by their place along `axis`, as
// TopK, Sort and ArgSort tell it. The other dimensions are equal; an index outside is an error.
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
// TensorBoard shows as Markdown: a vector as a column, a matrix as a table. Bytes that are no UTF-8
// become U+FFFD.
Output text_summary(Output x, std::string tag, Site site = Site::here());

// Tile: x repeated multiples[i] times along each dimension i.
Output tile(Output x, std::vector<std::int64_t> multiples, Site site = Site::here());

// TileGrad: The sum over the copies that Tile made of a tensor of `shape`.
Output tile_grad(Output dy, Output shape, std::vector<std::int64_t> multiples,
    Site site = Site::here());

struct TopKOutputs {
  Output values;
  Output indices;
};
// TopK: The k largest elements along the last dimension, the largest first, and where they stand;
// of equal ones the first ones. -0 equals 0; a NaN is above all numbers, as in Max and ArgMax.
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
// TruncatedNormal: Normal numbers; those beyond two standard deviations are drawn again. New values
// in each run, the same for the same seed, node name and run.
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
// Unique: The values of a vector, each once, in the order of their first appearance: x[i] =
// y[index[i]], and y[j] appears counts[j] times. All NaN are one value, as in NumPy; -0 equals 0.
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

// UnsortedSegmentMax: y[s] = the maximum of the slices of data whose id is s, NaN where there is
// one; without any the lowest finite value. Equal maxima share the gradient equally. The shape of
// segment_ids is the beginning of data's; an id outside [0, num_segments) is an error.
Output unsorted_segment_max(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

// UnsortedSegmentMean: y[s] = the mean of the slices of data whose id is s; 0 without any. The
// shape of segment_ids is the beginning of data's; an id outside [0, num_segments) is an error.
Output unsorted_segment_mean(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

// UnsortedSegmentMin: y[s] = the minimum of the slices of data whose id is s, NaN where there is
// one; without any the largest finite value. Equal minima share the gradient equally. The shape of
// segment_ids is the beginning of data's; an id outside [0, num_segments) is an error.
Output unsorted_segment_min(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

// UnsortedSegmentProd: y[s] = the product of the slices of data whose id is s; 1 without any. The
// gradient is exact with zeros. The shape of segment_ids is the beginning of data's; an id outside
// [0, num_segments) is an error.
Output unsorted_segment_prod(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

// UnsortedSegmentSum: sums[s] = the sum of the slices of data whose id is s. The shape of
// segment_ids is the beginning of data's; an id outside [0, num_segments) is an error.
Output unsorted_segment_sum(Output data, Output segment_ids, Output num_segments,
    Site site = Site::here());

struct VocabularyIndexOptions {
  std::int64_t missing = -1;
};
// VocabularyIndex: The place of each text of x among `words`, a vector of which no two are alike;
// `missing` for one that is not among them. The other way round is Gather.
Output vocabulary_index(Output x, Tensor words, const VocabularyIndexOptions& options = {},
    Site site = Site::here());

// Where: The indices of all elements that are true, or not 0, in their order: [n, rank], with n
// known when it runs. A NaN is not 0. GatherNd takes such elements.
Output where(Output condition, Site site = Site::here());

// ZerosLike: Zeros (false) of the shape and type of x.
Output zeros_like(Output x, Site site = Site::here());

}  // namespace troupe
