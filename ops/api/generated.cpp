// Written by troupe-gen from the op definitions; do not edit.
// clang-format off
#include "ops/api/generated.hpp"

#include "ops/api/node.hpp"

namespace troupe {

Output acos(Output x, Site site) {
  NodeSpec node{.op = "Acos"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output acosh(Output x, Site site) {
  NodeSpec node{.op = "Acosh"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output add(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Add"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output add_n(const std::vector<Output>& values, Site site) {
  NodeSpec node{.op = "AddN"};
  node.inputs = flat_inputs({values});
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output all(Output x, const AllOptions& options, Site site) {
  NodeSpec node{.op = "All"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.attrs.emplace("keep_dims", options.keep_dims);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output angle(Output z, Site site) {
  NodeSpec node{.op = "Angle"};
  node.inputs = {z};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output any(Output x, const AnyOptions& options, Site site) {
  NodeSpec node{.op = "Any"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.attrs.emplace("keep_dims", options.keep_dims);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Op apply_adadelta(Output var, Output square, Output moved, Output lr, Output rho, Output epsilon,
    Output grad, const ApplyAdadeltaOptions& options, Site site) {
  NodeSpec node{.op = "ApplyAdadelta"};
  node.inputs = {var, square, moved, lr, rho, epsilon, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_adadelta_when(Output var, Output square, Output moved, Output lr, Output rho,
    Output epsilon, Output grad, Output when, const ApplyAdadeltaWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyAdadeltaWhen"};
  node.inputs = {var, square, moved, lr, rho, epsilon, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_adagrad(Output var, Output accum, Output lr, Output initial, Output epsilon,
    Output grad, const ApplyAdagradOptions& options, Site site) {
  NodeSpec node{.op = "ApplyAdagrad"};
  node.inputs = {var, accum, lr, initial, epsilon, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_adagrad_when(Output var, Output accum, Output lr, Output initial, Output epsilon,
    Output grad, Output when, const ApplyAdagradWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyAdagradWhen"};
  node.inputs = {var, accum, lr, initial, epsilon, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_adam(Output var, Output m, Output v, Output step, Output lr, Output beta1, Output beta2,
    Output epsilon, Output grad, const ApplyAdamOptions& options, Site site) {
  NodeSpec node{.op = "ApplyAdam"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_adam_w(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output grad, Output decay, const ApplyAdamWOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplyAdamW"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, grad, decay};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_adam_w_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output grad, Output decay, Output when,
    const ApplyAdamWWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyAdamWWhen"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, grad, decay, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_adam_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output grad, Output when, const ApplyAdamWhenOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplyAdamWhen"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_centered_rms_prop(Output var, Output mean, Output square, Output velocity, Output lr,
    Output rho, Output momentum, Output epsilon, Output grad,
    const ApplyCenteredRMSPropOptions& options, Site site) {
  NodeSpec node{.op = "ApplyCenteredRMSProp"};
  node.inputs = {var, mean, square, velocity, lr, rho, momentum, epsilon, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_centered_rms_prop_when(Output var, Output mean, Output square, Output velocity,
    Output lr, Output rho, Output momentum, Output epsilon, Output grad, Output when,
    const ApplyCenteredRMSPropWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyCenteredRMSPropWhen"};
  node.inputs = {var, mean, square, velocity, lr, rho, momentum, epsilon, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_ftrl(Output var, Output accum, Output linear, Output lr, Output initial, Output l1,
    Output l2, Output grad, const ApplyFtrlOptions& options, Site site) {
  NodeSpec node{.op = "ApplyFtrl"};
  node.inputs = {var, accum, linear, lr, initial, l1, l2, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_ftrl_when(Output var, Output accum, Output linear, Output lr, Output initial, Output l1,
    Output l2, Output grad, Output when, const ApplyFtrlWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyFtrlWhen"};
  node.inputs = {var, accum, linear, lr, initial, l1, l2, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_gradient_descent(Output var, Output lr, Output grad,
    const ApplyGradientDescentOptions& options, Site site) {
  NodeSpec node{.op = "ApplyGradientDescent"};
  node.inputs = {var, lr, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_gradient_descent_when(Output var, Output lr, Output grad, Output when,
    const ApplyGradientDescentWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyGradientDescentWhen"};
  node.inputs = {var, lr, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_lamb(Output var, Output m, Output v, Output step, Output lr, Output beta1, Output beta2,
    Output epsilon, Output grad, Output decay, const ApplyLambOptions& options, Site site) {
  NodeSpec node{.op = "ApplyLamb"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, grad, decay};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_lamb_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output grad, Output decay, Output when,
    const ApplyLambWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyLambWhen"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, grad, decay, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_momentum(Output var, Output accum, Output lr, Output grad, Output momentum,
    const ApplyMomentumOptions& options, Site site) {
  NodeSpec node{.op = "ApplyMomentum"};
  node.inputs = {var, accum, lr, grad, momentum};
  node.attrs.emplace("nesterov", options.nesterov);
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_momentum_when(Output var, Output accum, Output lr, Output grad, Output momentum,
    Output when, const ApplyMomentumWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyMomentumWhen"};
  node.inputs = {var, accum, lr, grad, momentum, when};
  node.attrs.emplace("nesterov", options.nesterov);
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_moving_average(Output var, Output rate, Output value,
    const ApplyMovingAverageOptions& options, Site site) {
  NodeSpec node{.op = "ApplyMovingAverage"};
  node.inputs = {var, rate, value};
  node.attrs.emplace("training_only", options.training_only);
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_moving_average_when(Output var, Output rate, Output value, Output when,
    const ApplyMovingAverageWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyMovingAverageWhen"};
  node.inputs = {var, rate, value, when};
  node.attrs.emplace("training_only", options.training_only);
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_proximal_adagrad(Output var, Output accum, Output lr, Output initial, Output l1,
    Output l2, Output grad, const ApplyProximalAdagradOptions& options, Site site) {
  NodeSpec node{.op = "ApplyProximalAdagrad"};
  node.inputs = {var, accum, lr, initial, l1, l2, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_proximal_adagrad_when(Output var, Output accum, Output lr, Output initial, Output l1,
    Output l2, Output grad, Output when, const ApplyProximalAdagradWhenOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplyProximalAdagradWhen"};
  node.inputs = {var, accum, lr, initial, l1, l2, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_proximal_gradient_descent(Output var, Output lr, Output l1, Output l2, Output grad,
    const ApplyProximalGradientDescentOptions& options, Site site) {
  NodeSpec node{.op = "ApplyProximalGradientDescent"};
  node.inputs = {var, lr, l1, l2, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_proximal_gradient_descent_when(Output var, Output lr, Output l1, Output l2, Output grad,
    Output when, const ApplyProximalGradientDescentWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyProximalGradientDescentWhen"};
  node.inputs = {var, lr, l1, l2, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_rms_prop(Output var, Output square, Output velocity, Output lr, Output rho,
    Output momentum, Output epsilon, Output grad, const ApplyRMSPropOptions& options, Site site) {
  NodeSpec node{.op = "ApplyRMSProp"};
  node.inputs = {var, square, velocity, lr, rho, momentum, epsilon, grad};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_rms_prop_when(Output var, Output square, Output velocity, Output lr, Output rho,
    Output momentum, Output epsilon, Output grad, Output when,
    const ApplyRMSPropWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplyRMSPropWhen"};
  node.inputs = {var, square, velocity, lr, rho, momentum, epsilon, grad, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_adadelta(Output var, Output square, Output moved, Output lr, Output rho,
    Output epsilon, Output indices, Output rows, const ApplySparseAdadeltaOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplySparseAdadelta"};
  node.inputs = {var, square, moved, lr, rho, epsilon, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_adadelta_when(Output var, Output square, Output moved, Output lr, Output rho,
    Output epsilon, Output indices, Output rows, Output when,
    const ApplySparseAdadeltaWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseAdadeltaWhen"};
  node.inputs = {var, square, moved, lr, rho, epsilon, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_adagrad(Output var, Output accum, Output lr, Output initial, Output epsilon,
    Output indices, Output rows, const ApplySparseAdagradOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseAdagrad"};
  node.inputs = {var, accum, lr, initial, epsilon, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_adagrad_when(Output var, Output accum, Output lr, Output initial, Output epsilon,
    Output indices, Output rows, Output when, const ApplySparseAdagradWhenOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplySparseAdagradWhen"};
  node.inputs = {var, accum, lr, initial, epsilon, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_adam(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output indices, Output rows,
    const ApplySparseAdamOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseAdam"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_adam_w(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output decay, Output indices, Output rows,
    const ApplySparseAdamWOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseAdamW"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, decay, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_adam_w_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output decay, Output indices, Output rows, Output when,
    const ApplySparseAdamWWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseAdamWWhen"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, decay, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_adam_when(Output var, Output m, Output v, Output step, Output lr, Output beta1,
    Output beta2, Output epsilon, Output indices, Output rows, Output when,
    const ApplySparseAdamWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseAdamWhen"};
  node.inputs = {var, m, v, step, lr, beta1, beta2, epsilon, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_centered_rms_prop(Output var, Output mean, Output square, Output velocity,
    Output lr, Output rho, Output momentum, Output epsilon, Output indices, Output rows,
    const ApplySparseCenteredRMSPropOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseCenteredRMSProp"};
  node.inputs = {var, mean, square, velocity, lr, rho, momentum, epsilon, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_centered_rms_prop_when(Output var, Output mean, Output square, Output velocity,
    Output lr, Output rho, Output momentum, Output epsilon, Output indices, Output rows,
    Output when, const ApplySparseCenteredRMSPropWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseCenteredRMSPropWhen"};
  node.inputs = {var, mean, square, velocity, lr, rho, momentum, epsilon, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_ftrl(Output var, Output accum, Output linear, Output lr, Output initial,
    Output l1, Output l2, Output indices, Output rows, const ApplySparseFtrlOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplySparseFtrl"};
  node.inputs = {var, accum, linear, lr, initial, l1, l2, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_ftrl_when(Output var, Output accum, Output linear, Output lr, Output initial,
    Output l1, Output l2, Output indices, Output rows, Output when,
    const ApplySparseFtrlWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseFtrlWhen"};
  node.inputs = {var, accum, linear, lr, initial, l1, l2, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_gradient_descent(Output var, Output lr, Output indices, Output rows,
    const ApplySparseGradientDescentOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseGradientDescent"};
  node.inputs = {var, lr, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_gradient_descent_when(Output var, Output lr, Output indices, Output rows,
    Output when, const ApplySparseGradientDescentWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseGradientDescentWhen"};
  node.inputs = {var, lr, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_momentum(Output var, Output accum, Output lr, Output momentum, Output indices,
    Output rows, const ApplySparseMomentumOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseMomentum"};
  node.inputs = {var, accum, lr, momentum, indices, rows};
  node.attrs.emplace("nesterov", options.nesterov);
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_momentum_when(Output var, Output accum, Output lr, Output momentum,
    Output indices, Output rows, Output when, const ApplySparseMomentumWhenOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplySparseMomentumWhen"};
  node.inputs = {var, accum, lr, momentum, indices, rows, when};
  node.attrs.emplace("nesterov", options.nesterov);
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_proximal_adagrad(Output var, Output accum, Output lr, Output initial, Output l1,
    Output l2, Output indices, Output rows, const ApplySparseProximalAdagradOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplySparseProximalAdagrad"};
  node.inputs = {var, accum, lr, initial, l1, l2, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_proximal_adagrad_when(Output var, Output accum, Output lr, Output initial,
    Output l1, Output l2, Output indices, Output rows, Output when,
    const ApplySparseProximalAdagradWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseProximalAdagradWhen"};
  node.inputs = {var, accum, lr, initial, l1, l2, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_proximal_gradient_descent(Output var, Output lr, Output l1, Output l2,
    Output indices, Output rows, const ApplySparseProximalGradientDescentOptions& options,
    Site site) {
  NodeSpec node{.op = "ApplySparseProximalGradientDescent"};
  node.inputs = {var, lr, l1, l2, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_proximal_gradient_descent_when(Output var, Output lr, Output l1, Output l2,
    Output indices, Output rows, Output when,
    const ApplySparseProximalGradientDescentWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseProximalGradientDescentWhen"};
  node.inputs = {var, lr, l1, l2, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_rms_prop(Output var, Output square, Output velocity, Output lr, Output rho,
    Output momentum, Output epsilon, Output indices, Output rows,
    const ApplySparseRMSPropOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseRMSProp"};
  node.inputs = {var, square, velocity, lr, rho, momentum, epsilon, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op apply_sparse_rms_prop_when(Output var, Output square, Output velocity, Output lr, Output rho,
    Output momentum, Output epsilon, Output indices, Output rows, Output when,
    const ApplySparseRMSPropWhenOptions& options, Site site) {
  NodeSpec node{.op = "ApplySparseRMSPropWhen"};
  node.inputs = {var, square, velocity, lr, rho, momentum, epsilon, indices, rows, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Output arg_max(Output x, const ArgMaxOptions& options, Site site) {
  NodeSpec node{.op = "ArgMax"};
  node.inputs = {x};
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output arg_min(Output x, const ArgMinOptions& options, Site site) {
  NodeSpec node{.op = "ArgMin"};
  node.inputs = {x};
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output arg_sort(Output x, const ArgSortOptions& options, Site site) {
  NodeSpec node{.op = "ArgSort"};
  node.inputs = {x};
  node.attrs.emplace("axis", options.axis);
  node.attrs.emplace("descending", options.descending);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output asin(Output x, Site site) {
  NodeSpec node{.op = "Asin"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output asinh(Output x, Site site) {
  NodeSpec node{.op = "Asinh"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Op assert_(Output condition, const AssertOptions& options, Site site) {
  NodeSpec node{.op = "Assert"};
  node.inputs = {condition};
  node.attrs.emplace("message", options.message);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op assign(Output var, Output value, const AssignOptions& options, Site site) {
  NodeSpec node{.op = "Assign"};
  node.inputs = {var, value};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op assign_add(Output var, Output value, const AssignAddOptions& options, Site site) {
  NodeSpec node{.op = "AssignAdd"};
  node.inputs = {var, value};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op assign_add_when(Output var, Output value, Output when, const AssignAddWhenOptions& options,
    Site site) {
  NodeSpec node{.op = "AssignAddWhen"};
  node.inputs = {var, value, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op assign_sub(Output var, Output value, const AssignSubOptions& options, Site site) {
  NodeSpec node{.op = "AssignSub"};
  node.inputs = {var, value};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op assign_sub_when(Output var, Output value, Output when, const AssignSubWhenOptions& options,
    Site site) {
  NodeSpec node{.op = "AssignSubWhen"};
  node.inputs = {var, value, when};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Output atan(Output x, Site site) {
  NodeSpec node{.op = "Atan"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output atan2(const Operand& y, const Operand& x, Site site) {
  NodeSpec node{.op = "Atan2"};
  node.inputs = {value_beside(y, {&y, &x}, site), value_beside(x, {&y, &x}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output atanh(Output x, Site site) {
  NodeSpec node{.op = "Atanh"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output audio_summary(Output x, std::string tag, double sample_rate,
    const AudioSummaryOptions& options, Site site) {
  NodeSpec node{.op = "AudioSummary"};
  node.inputs = {x};
  node.attrs.emplace("tag", std::move(tag));
  node.attrs.emplace("sample_rate", sample_rate);
  node.attrs.emplace("max_outputs", options.max_outputs);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output avg_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    const AvgPoolOptions& options, Site site) {
  NodeSpec node{.op = "AvgPool"};
  node.inputs = {x};
  node.attrs.emplace("ksize", std::move(ksize));
  node.attrs.emplace("strides", std::move(strides));
  node.attrs.emplace("padding", options.padding);
  node.attrs.emplace("explicit_paddings", options.explicit_paddings);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output avg_pool_grad(Output x_sizes, Output dy, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const AvgPoolGradOptions& options, Site site) {
  NodeSpec node{.op = "AvgPoolGrad"};
  node.inputs = {x_sizes, dy};
  node.attrs.emplace("ksize", std::move(ksize));
  node.attrs.emplace("strides", std::move(strides));
  node.attrs.emplace("padding", options.padding);
  node.attrs.emplace("explicit_paddings", options.explicit_paddings);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output batch_mat_mul(Output a, Output b, const BatchMatMulOptions& options, Site site) {
  NodeSpec node{.op = "BatchMatMul"};
  node.inputs = {a, b};
  node.attrs.emplace("transpose_a", options.transpose_a);
  node.attrs.emplace("transpose_b", options.transpose_b);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output bernoulli(Output p, Site site) {
  NodeSpec node{.op = "Bernoulli"};
  node.inputs = {p};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output bias_add(Output x, Output bias, Site site) {
  NodeSpec node{.op = "BiasAdd"};
  node.inputs = {x, bias};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output bias_add_grad(Output dy, Site site) {
  NodeSpec node{.op = "BiasAddGrad"};
  node.inputs = {dy};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output bincount(Output x, std::int64_t size, Site site) {
  NodeSpec node{.op = "Bincount"};
  node.inputs = {x};
  node.attrs.emplace("size", size);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output bitwise_and(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "BitwiseAnd"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output bitwise_or(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "BitwiseOr"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output bitwise_xor(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "BitwiseXor"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output broadcast_to(Output x, Output shape, Site site) {
  NodeSpec node{.op = "BroadcastTo"};
  node.inputs = {x, shape};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output ctc_loss(Output logits, Output labels, Output label_lengths, Output lengths,
    const CTCLossOptions& options, Site site) {
  NodeSpec node{.op = "CTCLoss"};
  node.inputs = {logits, labels, label_lengths, lengths};
  node.attrs.emplace("blank", options.blank);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output ctc_loss_grad(Output logits, Output labels, Output label_lengths, Output lengths,
    Output dy, const CTCLossGradOptions& options, Site site) {
  NodeSpec node{.op = "CTCLossGrad"};
  node.inputs = {logits, labels, label_lengths, lengths, dy};
  node.attrs.emplace("blank", options.blank);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

CTCLossGradGradOutputs ctc_loss_grad_grad(Output logits, Output labels, Output label_lengths,
    Output lengths, Output dy, Output d, const CTCLossGradGradOptions& options, Site site) {
  NodeSpec node{.op = "CTCLossGradGrad"};
  node.inputs = {logits, labels, label_lengths, lengths, dy, d};
  node.attrs.emplace("blank", options.blank);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output cast(Output x, DType to, Site site) {
  NodeSpec node{.op = "Cast"};
  node.inputs = {x};
  node.attrs.emplace("to", to);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output categorical(Output logits, std::int64_t n, Site site) {
  NodeSpec node{.op = "Categorical"};
  node.inputs = {logits};
  node.attrs.emplace("n", n);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output ceil(Output x, Site site) {
  NodeSpec node{.op = "Ceil"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output check_numerics(Output x, const CheckNumericsOptions& options, Site site) {
  NodeSpec node{.op = "CheckNumerics"};
  node.inputs = {x};
  node.attrs.emplace("message", options.message);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output cholesky(Output x, Site site) {
  NodeSpec node{.op = "Cholesky"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output complex(const Operand& re, const Operand& im, Site site) {
  NodeSpec node{.op = "Complex"};
  node.inputs = {value_beside(re, {&re, &im}, site), value_beside(im, {&re, &im}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output complex_abs(Output z, Site site) {
  NodeSpec node{.op = "ComplexAbs"};
  node.inputs = {z};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output concat(const std::vector<Output>& values, const ConcatOptions& options, Site site) {
  NodeSpec node{.op = "Concat"};
  node.inputs = flat_inputs({values});
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

std::vector<Output> concat_grad(Output dy, const std::vector<Output>& shapes,
    const ConcatGradOptions& options, Site site) {
  NodeSpec node{.op = "ConcatGrad"};
  node.inputs = flat_inputs({dy, shapes});
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

Output conj(Output z, Site site) {
  NodeSpec node{.op = "Conj"};
  node.inputs = {z};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output conv2d(Output x, Output filter, const Conv2DOptions& options, Site site) {
  NodeSpec node{.op = "Conv2D"};
  node.inputs = {x, filter};
  node.attrs.emplace("strides", options.strides);
  node.attrs.emplace("padding", options.padding);
  node.attrs.emplace("explicit_paddings", options.explicit_paddings);
  node.attrs.emplace("dilations", options.dilations);
  node.attrs.emplace("groups", options.groups);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output conv2d_backprop_filter(Output x, Output filter_sizes, Output dy,
    const Conv2DBackpropFilterOptions& options, Site site) {
  NodeSpec node{.op = "Conv2DBackpropFilter"};
  node.inputs = {x, filter_sizes, dy};
  node.attrs.emplace("strides", options.strides);
  node.attrs.emplace("padding", options.padding);
  node.attrs.emplace("explicit_paddings", options.explicit_paddings);
  node.attrs.emplace("dilations", options.dilations);
  node.attrs.emplace("groups", options.groups);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output conv2d_backprop_input(Output x_sizes, Output filter, Output dy,
    const Conv2DBackpropInputOptions& options, Site site) {
  NodeSpec node{.op = "Conv2DBackpropInput"};
  node.inputs = {x_sizes, filter, dy};
  node.attrs.emplace("strides", options.strides);
  node.attrs.emplace("padding", options.padding);
  node.attrs.emplace("explicit_paddings", options.explicit_paddings);
  node.attrs.emplace("dilations", options.dilations);
  node.attrs.emplace("groups", options.groups);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output cos(Output x, Site site) {
  NodeSpec node{.op = "Cos"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output cosh(Output x, Site site) {
  NodeSpec node{.op = "Cosh"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output cumprod(Output x, const CumprodOptions& options, Site site) {
  NodeSpec node{.op = "Cumprod"};
  node.inputs = {x};
  node.attrs.emplace("axis", options.axis);
  node.attrs.emplace("exclusive", options.exclusive);
  node.attrs.emplace("reverse", options.reverse);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output cumsum(Output x, const CumsumOptions& options, Site site) {
  NodeSpec node{.op = "Cumsum"};
  node.inputs = {x};
  node.attrs.emplace("axis", options.axis);
  node.attrs.emplace("exclusive", options.exclusive);
  node.attrs.emplace("reverse", options.reverse);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output data_pipeline(GraphBuilder& g, std::vector<std::string> stages, Tensor tensors,
    const DataPipelineOptions& options, Site site) {
  NodeSpec node{.op = "DataPipeline"};
  node.attrs.emplace("stages", std::move(stages));
  node.attrs.emplace("files", options.files);
  node.attrs.emplace("tensors", std::move(tensors));
  node.attrs.emplace("functions", options.functions);
  node.attrs.emplace("prefetch", options.prefetch);
  node.attrs.emplace("container", options.container);
  node.attrs.emplace("shared_name", options.shared_name);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Output dataset(GraphBuilder& g, std::string source, std::vector<DType> types,
    std::vector<PartialShape> shapes, const DatasetOptions& options, Site site) {
  NodeSpec node{.op = "Dataset"};
  node.attrs.emplace("source", std::move(source));
  node.attrs.emplace("first", options.first);
  node.attrs.emplace("digits_seed", options.digits_seed);
  node.attrs.emplace("files", options.files);
  node.attrs.emplace("batch", options.batch);
  node.attrs.emplace("shuffle", options.shuffle);
  node.attrs.emplace("seed", options.seed);
  node.attrs.emplace("repeat", options.repeat);
  node.attrs.emplace("drop_remainder", options.drop_remainder);
  node.attrs.emplace("prefetch", options.prefetch);
  node.attrs.emplace("limit", options.limit);
  node.attrs.emplace("types", std::move(types));
  node.attrs.emplace("shapes", std::move(shapes));
  node.attrs.emplace("container", options.container);
  node.attrs.emplace("shared_name", options.shared_name);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

std::vector<Output> dequeue(Output handle, std::vector<DType> types,
    const DequeueOptions& options, Site site) {
  NodeSpec node{.op = "Dequeue"};
  node.inputs = {handle};
  node.attrs.emplace("shapes", options.shapes);
  node.attrs.emplace("types", std::move(types));
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

std::vector<Output> dequeue_many(Output handle, Output n, std::vector<DType> types,
    const DequeueManyOptions& options, Site site) {
  NodeSpec node{.op = "DequeueMany"};
  node.inputs = {handle, n};
  node.attrs.emplace("shapes", options.shapes);
  node.attrs.emplace("types", std::move(types));
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

std::vector<Output> dequeue_up_to(Output handle, Output n, std::vector<DType> types,
    const DequeueUpToOptions& options, Site site) {
  NodeSpec node{.op = "DequeueUpTo"};
  node.inputs = {handle, n};
  node.attrs.emplace("shapes", options.shapes);
  node.attrs.emplace("types", std::move(types));
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

Output digamma(Output x, Site site) {
  NodeSpec node{.op = "Digamma"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output div(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Div"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

DotProductAttentionOutputs dot_product_attention(Output q, Output k, Output v,
    const DotProductAttentionOptions& options, Site site) {
  NodeSpec node{.op = "DotProductAttention"};
  node.inputs = {q, k, v};
  node.attrs.emplace("scale", options.scale);
  node.attrs.emplace("causal", options.causal);
  node.attrs.emplace("Tstats", options.tstats);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

DotProductAttentionGradOutputs dot_product_attention_grad(Output dy, Output q, Output k,
    Output v, Output y, Output stats, const DotProductAttentionGradOptions& options, Site site) {
  NodeSpec node{.op = "DotProductAttentionGrad"};
  node.inputs = {dy, q, k, v, y, stats};
  node.attrs.emplace("scale", options.scale);
  node.attrs.emplace("causal", options.causal);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

std::vector<Output> dynamic_partition(Output data, Output partitions, std::int64_t n, Site site) {
  NodeSpec node{.op = "DynamicPartition"};
  node.inputs = {data, partitions};
  node.attrs.emplace("N", n);
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

Output dynamic_stitch(const std::vector<Output>& indices, const std::vector<Output>& data,
    Site site) {
  NodeSpec node{.op = "DynamicStitch"};
  node.inputs = flat_inputs({indices, data});
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

std::vector<Output> dynamic_stitch_grad(Output dy, const std::vector<Output>& indices, Site site) {
  NodeSpec node{.op = "DynamicStitchGrad"};
  node.inputs = flat_inputs({dy, indices});
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

Output elu(Output x, Site site) {
  NodeSpec node{.op = "Elu"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output elu_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "EluGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Op enqueue(Output handle, const std::vector<Output>& values, Site site) {
  NodeSpec node{.op = "Enqueue"};
  node.inputs = flat_inputs({handle, values});
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op enqueue_many(Output handle, const std::vector<Output>& values, Site site) {
  NodeSpec node{.op = "EnqueueMany"};
  node.inputs = flat_inputs({handle, values});
  node.site = std::move(site);
  return add_node(std::move(node));
}

Output ensure_same_shape(Output x, Output like, Site site) {
  NodeSpec node{.op = "EnsureSameShape"};
  node.inputs = {x, like};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output ensure_shape(Output x, PartialShape shape, Site site) {
  NodeSpec node{.op = "EnsureShape"};
  node.inputs = {x};
  node.attrs.emplace("shape", std::move(shape));
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output equal(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Equal"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output erf(Output x, Site site) {
  NodeSpec node{.op = "Erf"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output erf_grad(Output dy, Output x, Site site) {
  NodeSpec node{.op = "ErfGrad"};
  node.inputs = {dy, x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output euclidean_norm(Output x, Site site) {
  NodeSpec node{.op = "EuclideanNorm"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output exp(Output x, Site site) {
  NodeSpec node{.op = "Exp"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output expand_dims(Output x, std::int64_t axis, Site site) {
  NodeSpec node{.op = "ExpandDims"};
  node.inputs = {x};
  node.attrs.emplace("axis", axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output expm1(Output x, Site site) {
  NodeSpec node{.op = "Expm1"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output fft(Output x, const FFTOptions& options, Site site) {
  NodeSpec node{.op = "FFT"};
  node.inputs = {x};
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output fft2d(Output x, const FFT2DOptions& options, Site site) {
  NodeSpec node{.op = "FFT2D"};
  node.inputs = {x};
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output fft3d(Output x, const FFT3DOptions& options, Site site) {
  NodeSpec node{.op = "FFT3D"};
  node.inputs = {x};
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output fifo_queue(GraphBuilder& g, std::vector<DType> types, const FIFOQueueOptions& options,
    Site site) {
  NodeSpec node{.op = "FIFOQueue"};
  node.attrs.emplace("types", std::move(types));
  node.attrs.emplace("shapes", options.shapes);
  node.attrs.emplace("capacity", options.capacity);
  node.attrs.emplace("container", options.container);
  node.attrs.emplace("shared_name", options.shared_name);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Output fill(Output dims, Output value, Site site) {
  NodeSpec node{.op = "Fill"};
  node.inputs = {dims, value};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output floor(Output x, Site site) {
  NodeSpec node{.op = "Floor"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output floor_div(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "FloorDiv"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

FusedBatchNormOutputs fused_batch_norm(Output x, Output scale, Output offset, Output mean,
    Output variance, const FusedBatchNormOptions& options, Site site) {
  NodeSpec node{.op = "FusedBatchNorm"};
  node.inputs = {x, scale, offset, mean, variance};
  node.attrs.emplace("epsilon", options.epsilon);
  node.attrs.emplace("is_training", options.is_training);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2), op.output(3)};
}

FusedBatchNormGradOutputs fused_batch_norm_grad(Output dy, Output x, Output scale, Output mean,
    Output inv_std, Output dmean, Output dvariance, Output dinv_std,
    const FusedBatchNormGradOptions& options, Site site) {
  NodeSpec node{.op = "FusedBatchNormGrad"};
  node.inputs = {dy, x, scale, mean, inv_std, dmean, dvariance, dinv_std};
  node.attrs.emplace("is_training", options.is_training);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

Output gather(Output params, Output indices, const GatherOptions& options, Site site) {
  NodeSpec node{.op = "Gather"};
  node.inputs = {params, indices};
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output gather_add(Output sums, Output dy, Output indices, Output shape,
    const GatherAddOptions& options, Site site) {
  NodeSpec node{.op = "GatherAdd"};
  node.inputs = {sums, dy, indices, shape};
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output gather_grad(Output dy, Output indices, Output shape, const GatherGradOptions& options,
    Site site) {
  NodeSpec node{.op = "GatherGrad"};
  node.inputs = {dy, indices, shape};
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output gather_nd(Output params, Output indices, Site site) {
  NodeSpec node{.op = "GatherNd"};
  node.inputs = {params, indices};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output gelu(Output x, Site site) {
  NodeSpec node{.op = "Gelu"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output gelu_grad(Output dy, Output x, Site site) {
  NodeSpec node{.op = "GeluGrad"};
  node.inputs = {dy, x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output gelu_tanh(Output x, Site site) {
  NodeSpec node{.op = "GeluTanh"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output gelu_tanh_grad(Output dy, Output x, Site site) {
  NodeSpec node{.op = "GeluTanhGrad"};
  node.inputs = {dy, x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output greater(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Greater"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output greater_equal(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "GreaterEqual"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output group_norm(Output x, Output scale, Output offset, std::int64_t groups,
    const GroupNormOptions& options, Site site) {
  NodeSpec node{.op = "GroupNorm"};
  node.inputs = {x, scale, offset};
  node.attrs.emplace("groups", groups);
  node.attrs.emplace("epsilon", options.epsilon);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

GroupNormGradOutputs group_norm_grad(Output dy, Output x, Output scale, std::int64_t groups,
    const GroupNormGradOptions& options, Site site) {
  NodeSpec node{.op = "GroupNormGrad"};
  node.inputs = {dy, x, scale};
  node.attrs.emplace("groups", groups);
  node.attrs.emplace("epsilon", options.epsilon);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

Output histogram_summary(Output x, std::string tag, Site site) {
  NodeSpec node{.op = "HistogramSummary"};
  node.inputs = {x};
  node.attrs.emplace("tag", std::move(tag));
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output huber(const Operand& a, const Operand& b, const Operand& delta, Site site) {
  NodeSpec node{.op = "Huber"};
  node.inputs = {value_beside(a, {&a, &b, &delta}, site), value_beside(b, {&a, &b, &delta}, site), value_beside(delta, {&a, &b, &delta}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output ifft(Output x, const IFFTOptions& options, Site site) {
  NodeSpec node{.op = "IFFT"};
  node.inputs = {x};
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output ifft2d(Output x, const IFFT2DOptions& options, Site site) {
  NodeSpec node{.op = "IFFT2D"};
  node.inputs = {x};
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output ifft3d(Output x, const IFFT3DOptions& options, Site site) {
  NodeSpec node{.op = "IFFT3D"};
  node.inputs = {x};
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output irfft(Output x, const IRFFTOptions& options, Site site) {
  NodeSpec node{.op = "IRFFT"};
  node.inputs = {x};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output irfft2d(Output x, const IRFFT2DOptions& options, Site site) {
  NodeSpec node{.op = "IRFFT2D"};
  node.inputs = {x};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output irfft2d_grad(Output dy, Output shape, const IRFFT2DGradOptions& options, Site site) {
  NodeSpec node{.op = "IRFFT2DGrad"};
  node.inputs = {dy, shape};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output irfft3d(Output x, const IRFFT3DOptions& options, Site site) {
  NodeSpec node{.op = "IRFFT3D"};
  node.inputs = {x};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output irfft3d_grad(Output dy, Output shape, const IRFFT3DGradOptions& options, Site site) {
  NodeSpec node{.op = "IRFFT3DGrad"};
  node.inputs = {dy, shape};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output irfft_grad(Output dy, Output shape, const IRFFTGradOptions& options, Site site) {
  NodeSpec node{.op = "IRFFTGrad"};
  node.inputs = {dy, shape};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output identity(Output x, Site site) {
  NodeSpec node{.op = "Identity"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output imag(Output z, Site site) {
  NodeSpec node{.op = "Imag"};
  node.inputs = {z};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output image_summary(Output x, std::string tag, const ImageSummaryOptions& options, Site site) {
  NodeSpec node{.op = "ImageSummary"};
  node.inputs = {x};
  node.attrs.emplace("tag", std::move(tag));
  node.attrs.emplace("max_outputs", options.max_outputs);
  node.attrs.emplace("bad_color", options.bad_color);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output in_top_k(Output predictions, Output targets, std::int64_t k, Site site) {
  NodeSpec node{.op = "InTopK"};
  node.inputs = {predictions, targets};
  node.attrs.emplace("k", k);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output invert(Output x, Site site) {
  NodeSpec node{.op = "Invert"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output is_finite(Output x, Site site) {
  NodeSpec node{.op = "IsFinite"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output is_inf(Output x, Site site) {
  NodeSpec node{.op = "IsInf"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output is_nan(Output x, Site site) {
  NodeSpec node{.op = "IsNan"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output is_variable_initialized(Output handle, Site site) {
  NodeSpec node{.op = "IsVariableInitialized"};
  node.inputs = {handle};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output l2_loss(Output x, Site site) {
  NodeSpec node{.op = "L2Loss"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output layer_norm(Output x, Output scale, Output offset, const LayerNormOptions& options,
    Site site) {
  NodeSpec node{.op = "LayerNorm"};
  node.inputs = {x, scale, offset};
  node.attrs.emplace("epsilon", options.epsilon);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

LayerNormGradOutputs layer_norm_grad(Output dy, Output x, Output scale,
    const LayerNormGradOptions& options, Site site) {
  NodeSpec node{.op = "LayerNormGrad"};
  node.inputs = {dy, x, scale};
  node.attrs.emplace("epsilon", options.epsilon);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

Output leaky_relu(const Operand& x, const Operand& slope, Site site) {
  NodeSpec node{.op = "LeakyRelu"};
  node.inputs = {value_beside(x, {&x, &slope}, site), value_beside(slope, {&x, &slope}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output leaky_relu_grad(Output dy, Output x, Output slope, Site site) {
  NodeSpec node{.op = "LeakyReluGrad"};
  node.inputs = {dy, x, slope};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output left_shift(const Operand& x, const Operand& bits, Site site) {
  NodeSpec node{.op = "LeftShift"};
  node.inputs = {value_beside(x, {&x, &bits}, site), value_beside(bits, {&x, &bits}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output less(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Less"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output less_equal(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "LessEqual"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output lgamma(Output x, Site site) {
  NodeSpec node{.op = "Lgamma"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output linear_recurrence(Output a, Output b, const LinearRecurrenceOptions& options, Site site) {
  NodeSpec node{.op = "LinearRecurrence"};
  node.inputs = {a, b};
  node.attrs.emplace("axis", options.axis);
  node.attrs.emplace("reverse", options.reverse);
  node.attrs.emplace("behind", options.behind);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_add_n(const std::vector<Output>& values, Site site) {
  NodeSpec node{.op = "ListAddN"};
  node.inputs = flat_inputs({values});
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_empty(GraphBuilder& g, DType dtype, const ListEmptyOptions& options, Site site) {
  NodeSpec node{.op = "ListEmpty"};
  node.attrs.emplace("T", dtype);
  node.attrs.emplace("shape", options.shape);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Output list_get(Output list, Output index, DType dtype, const ListGetOptions& options, Site site) {
  NodeSpec node{.op = "ListGet"};
  node.inputs = {list, index};
  node.attrs.emplace("T", dtype);
  node.attrs.emplace("shape", options.shape);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_get_add(Output sums, Output dy, Output index, Output like, Site site) {
  NodeSpec node{.op = "ListGetAdd"};
  node.inputs = {sums, dy, index, like};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_get_grad(Output dy, Output index, Output like, Site site) {
  NodeSpec node{.op = "ListGetGrad"};
  node.inputs = {dy, index, like};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_length(Output list, Site site) {
  NodeSpec node{.op = "ListLength"};
  node.inputs = {list};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

ListPopOutputs list_pop(Output list, DType dtype, const ListPopOptions& options, Site site) {
  NodeSpec node{.op = "ListPop"};
  node.inputs = {list};
  node.attrs.emplace("T", dtype);
  node.attrs.emplace("shape", options.shape);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output list_push(Output before, Output value, Site site) {
  NodeSpec node{.op = "ListPush"};
  node.inputs = {before, value};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_set(Output before, Output index, Output value, Site site) {
  NodeSpec node{.op = "ListSet"};
  node.inputs = {before, index, value};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

ListSetGradOutputs list_set_grad(Output dlist, Output index, Output before, DType dtype,
    const ListSetGradOptions& options, Site site) {
  NodeSpec node{.op = "ListSetGrad"};
  node.inputs = {dlist, index, before};
  node.attrs.emplace("T", dtype);
  node.attrs.emplace("shape", options.shape);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output list_stack(Output list, DType dtype, const ListStackOptions& options, Site site) {
  NodeSpec node{.op = "ListStack"};
  node.inputs = {list};
  node.attrs.emplace("T", dtype);
  node.attrs.emplace("shape", options.shape);
  node.attrs.emplace("length", options.length);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_unstack(Output x, Site site) {
  NodeSpec node{.op = "ListUnstack"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_unstack_grad(Output dlist, Output shape, DType dtype, Site site) {
  NodeSpec node{.op = "ListUnstackGrad"};
  node.inputs = {dlist, shape};
  node.attrs.emplace("T", dtype);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output list_zeros_like(Output list, Site site) {
  NodeSpec node{.op = "ListZerosLike"};
  node.inputs = {list};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output log(Output x, Site site) {
  NodeSpec node{.op = "Log"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output log1p(Output x, Site site) {
  NodeSpec node{.op = "Log1p"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

LogMatrixDeterminantOutputs log_matrix_determinant(Output x, Site site) {
  NodeSpec node{.op = "LogMatrixDeterminant"};
  node.inputs = {x};
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output log_softmax(Output logits, Site site) {
  NodeSpec node{.op = "LogSoftmax"};
  node.inputs = {logits};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output log_softmax_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "LogSoftmaxGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

LogUniformCandidateSamplerOutputs log_uniform_candidate_sampler(Output true_classes,
    std::int64_t n, std::int64_t range_max, const LogUniformCandidateSamplerOptions& options,
    Site site) {
  NodeSpec node{.op = "LogUniformCandidateSampler"};
  node.inputs = {true_classes};
  node.attrs.emplace("Tcount", options.tcount);
  node.attrs.emplace("n", n);
  node.attrs.emplace("range_max", range_max);
  node.attrs.emplace("unique", options.unique);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

Output logical_and(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "LogicalAnd"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output logical_not(Output x, Site site) {
  NodeSpec node{.op = "LogicalNot"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output logical_or(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "LogicalOr"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

LstmCellOutputs lstm_cell(Output x, Output r, Output c, Site site) {
  NodeSpec node{.op = "LstmCell"};
  node.inputs = {x, r, c};
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

LstmCellGradOutputs lstm_cell_grad(Output dh, Output dnext, Output gates, Output c, Output next,
    Site site) {
  NodeSpec node{.op = "LstmCellGrad"};
  node.inputs = {dh, dnext, gates, c, next};
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

LstmSequenceOutputs lstm_sequence(Output x, Output h0, Output c0, Output r, std::int64_t steps,
    Site site) {
  NodeSpec node{.op = "LstmSequence"};
  node.inputs = {x, h0, c0, r};
  node.attrs.emplace("steps", steps);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

LstmSequenceGradOutputs lstm_sequence_grad(Output dh, Output dnext, Output gates, Output h,
    Output next, Output h0, Output c0, Output r, std::int64_t steps, Site site) {
  NodeSpec node{.op = "LstmSequenceGrad"};
  node.inputs = {dh, dnext, gates, h, next, h0, c0, r};
  node.attrs.emplace("steps", steps);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2), op.output(3)};
}

MaskedDotProductAttentionOutputs masked_dot_product_attention(Output q, Output k, Output v,
    Output mask, const MaskedDotProductAttentionOptions& options, Site site) {
  NodeSpec node{.op = "MaskedDotProductAttention"};
  node.inputs = {q, k, v, mask};
  node.attrs.emplace("scale", options.scale);
  node.attrs.emplace("causal", options.causal);
  node.attrs.emplace("Tstats", options.tstats);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

MaskedDotProductAttentionGradOutputs masked_dot_product_attention_grad(Output dy, Output q,
    Output k, Output v, Output y, Output stats, Output mask,
    const MaskedDotProductAttentionGradOptions& options, Site site) {
  NodeSpec node{.op = "MaskedDotProductAttentionGrad"};
  node.inputs = {dy, q, k, v, y, stats, mask};
  node.attrs.emplace("scale", options.scale);
  node.attrs.emplace("causal", options.causal);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

Output mat_mul(Output a, Output b, const MatMulOptions& options, Site site) {
  NodeSpec node{.op = "MatMul"};
  node.inputs = {a, b};
  node.attrs.emplace("transpose_a", options.transpose_a);
  node.attrs.emplace("transpose_b", options.transpose_b);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_band_part(Output x, std::int64_t lower, std::int64_t upper, Site site) {
  NodeSpec node{.op = "MatrixBandPart"};
  node.inputs = {x};
  node.attrs.emplace("lower", lower);
  node.attrs.emplace("upper", upper);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_determinant(Output x, Site site) {
  NodeSpec node{.op = "MatrixDeterminant"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_diag(Output x, Site site) {
  NodeSpec node{.op = "MatrixDiag"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_diag_part(Output x, Site site) {
  NodeSpec node{.op = "MatrixDiagPart"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_diag_part_grad(Output dy, Output x, Site site) {
  NodeSpec node{.op = "MatrixDiagPartGrad"};
  node.inputs = {dy, x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_inverse(Output x, Site site) {
  NodeSpec node{.op = "MatrixInverse"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_solve(Output a, Output b, const MatrixSolveOptions& options, Site site) {
  NodeSpec node{.op = "MatrixSolve"};
  node.inputs = {a, b};
  node.attrs.emplace("adjoint", options.adjoint);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_solve_ls(Output a, Output b, const MatrixSolveLsOptions& options, Site site) {
  NodeSpec node{.op = "MatrixSolveLs"};
  node.inputs = {a, b};
  node.attrs.emplace("l2_regularizer", options.l2_regularizer);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_transpose(Output x, Site site) {
  NodeSpec node{.op = "MatrixTranspose"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output matrix_triangular_solve(Output a, Output b, const MatrixTriangularSolveOptions& options,
    Site site) {
  NodeSpec node{.op = "MatrixTriangularSolve"};
  node.inputs = {a, b};
  node.attrs.emplace("lower", options.lower);
  node.attrs.emplace("adjoint", options.adjoint);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output max(Output x, const MaxOptions& options, Site site) {
  NodeSpec node{.op = "Max"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.attrs.emplace("keep_dims", options.keep_dims);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output max_pool(Output x, std::vector<std::int64_t> ksize, std::vector<std::int64_t> strides,
    const MaxPoolOptions& options, Site site) {
  NodeSpec node{.op = "MaxPool"};
  node.inputs = {x};
  node.attrs.emplace("ksize", std::move(ksize));
  node.attrs.emplace("strides", std::move(strides));
  node.attrs.emplace("padding", options.padding);
  node.attrs.emplace("explicit_paddings", options.explicit_paddings);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output max_pool_grad(Output x, Output y, Output dy, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const MaxPoolGradOptions& options, Site site) {
  NodeSpec node{.op = "MaxPoolGrad"};
  node.inputs = {x, y, dy};
  node.attrs.emplace("ksize", std::move(ksize));
  node.attrs.emplace("strides", std::move(strides));
  node.attrs.emplace("padding", options.padding);
  node.attrs.emplace("explicit_paddings", options.explicit_paddings);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output max_pool_pick(Output x, Output y, Output d, std::vector<std::int64_t> ksize,
    std::vector<std::int64_t> strides, const MaxPoolPickOptions& options, Site site) {
  NodeSpec node{.op = "MaxPoolPick"};
  node.inputs = {x, y, d};
  node.attrs.emplace("ksize", std::move(ksize));
  node.attrs.emplace("strides", std::move(strides));
  node.attrs.emplace("padding", options.padding);
  node.attrs.emplace("explicit_paddings", options.explicit_paddings);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output maximum(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Maximum"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output mean(Output x, const MeanOptions& options, Site site) {
  NodeSpec node{.op = "Mean"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.attrs.emplace("keep_dims", options.keep_dims);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output merge_summary(const std::vector<Output>& summaries, Site site) {
  NodeSpec node{.op = "MergeSummary"};
  node.inputs = flat_inputs({summaries});
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output min(Output x, const MinOptions& options, Site site) {
  NodeSpec node{.op = "Min"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.attrs.emplace("keep_dims", options.keep_dims);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output minimum(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Minimum"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output mod(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Mod"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Op move_averages(GraphBuilder& g, Site site) {
  NodeSpec node{.op = "MoveAverages"};
  node.site = std::move(site);
  return g.add(std::move(node));
}

Output mul(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Mul"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output mutex(GraphBuilder& g, const MutexOptions& options, Site site) {
  NodeSpec node{.op = "Mutex"};
  node.attrs.emplace("container", options.container);
  node.attrs.emplace("shared_name", options.shared_name);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Op mutex_acquire(Output handle, Site site) {
  NodeSpec node{.op = "MutexAcquire"};
  node.inputs = {handle};
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op mutex_release(Output handle, Site site) {
  NodeSpec node{.op = "MutexRelease"};
  node.inputs = {handle};
  node.site = std::move(site);
  return add_node(std::move(node));
}

Output neg(Output x, Site site) {
  NodeSpec node{.op = "Neg"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

std::vector<Output> next_element(Output handle, std::vector<PartialShape> shapes,
    std::vector<DType> types, Site site) {
  NodeSpec node{.op = "NextElement"};
  node.inputs = {handle};
  node.attrs.emplace("shapes", std::move(shapes));
  node.attrs.emplace("types", std::move(types));
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

Op no_op(GraphBuilder& g, Site site) {
  NodeSpec node{.op = "NoOp"};
  node.site = std::move(site);
  return g.add(std::move(node));
}

Output not_equal(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "NotEqual"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output one_hot(Output indices, std::int64_t depth, const OneHotOptions& options, Site site) {
  NodeSpec node{.op = "OneHot"};
  node.inputs = {indices};
  node.attrs.emplace("T", options.dtype);
  node.attrs.emplace("depth", depth);
  node.attrs.emplace("on", options.on);
  node.attrs.emplace("off", options.off);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output ones_like(Output x, Site site) {
  NodeSpec node{.op = "OnesLike"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output pack(const std::vector<Output>& values, const PackOptions& options, Site site) {
  NodeSpec node{.op = "Pack"};
  node.inputs = flat_inputs({values});
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output pad(Output x, std::vector<std::int64_t> paddings, const PadOptions& options, Site site) {
  NodeSpec node{.op = "Pad"};
  node.inputs = {x};
  node.attrs.emplace("paddings", std::move(paddings));
  node.attrs.emplace("value", options.value);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output padding_fifo_queue(GraphBuilder& g, std::vector<DType> types,
    std::vector<PartialShape> shapes, const PaddingFIFOQueueOptions& options, Site site) {
  NodeSpec node{.op = "PaddingFIFOQueue"};
  node.attrs.emplace("types", std::move(types));
  node.attrs.emplace("shapes", std::move(shapes));
  node.attrs.emplace("capacity", options.capacity);
  node.attrs.emplace("container", options.container);
  node.attrs.emplace("shared_name", options.shared_name);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

PartitionRowsOutputs partition_rows(Output ids, std::int64_t rows, std::int64_t shards,
    const PartitionRowsOptions& options, Site site) {
  NodeSpec node{.op = "PartitionRows"};
  node.inputs = {ids};
  node.attrs.emplace("rows", rows);
  node.attrs.emplace("shards", shards);
  node.attrs.emplace("how", options.how);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output polygamma(Output x, std::int64_t n, Site site) {
  NodeSpec node{.op = "Polygamma"};
  node.inputs = {x};
  node.attrs.emplace("n", n);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output pow(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Pow"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output pow_grad_base(Output dy, Output a, Output b, Site site) {
  NodeSpec node{.op = "PowGradBase"};
  node.inputs = {dy, a, b};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output pow_grad_exponent(Output dy, Output y, Output a, Site site) {
  NodeSpec node{.op = "PowGradExponent"};
  node.inputs = {dy, y, a};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output print(Output x, const PrintOptions& options, Site site) {
  NodeSpec node{.op = "Print"};
  node.inputs = {x};
  node.attrs.emplace("message", options.message);
  node.attrs.emplace("limit", options.limit);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output priority_queue(GraphBuilder& g, std::vector<DType> types,
    const PriorityQueueOptions& options, Site site) {
  NodeSpec node{.op = "PriorityQueue"};
  node.attrs.emplace("types", std::move(types));
  node.attrs.emplace("shapes", options.shapes);
  node.attrs.emplace("capacity", options.capacity);
  node.attrs.emplace("container", options.container);
  node.attrs.emplace("shared_name", options.shared_name);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Output prod(Output x, const ProdOptions& options, Site site) {
  NodeSpec node{.op = "Prod"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.attrs.emplace("keep_dims", options.keep_dims);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output prod_grad(Output dy, Output x, const ProdGradOptions& options, Site site) {
  NodeSpec node{.op = "ProdGrad"};
  node.inputs = {dy, x};
  node.attrs.emplace("axes", options.axes);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output prod_grad_along(Output dy, Output x, const std::vector<Output>& tangents,
    const ProdGradAlongOptions& options, Site site) {
  NodeSpec node{.op = "ProdGradAlong"};
  node.inputs = flat_inputs({dy, x, tangents});
  node.attrs.emplace("axes", options.axes);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

QrOutputs qr(Output x, const QrOptions& options, Site site) {
  NodeSpec node{.op = "Qr"};
  node.inputs = {x};
  node.attrs.emplace("full_matrices", options.full_matrices);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Op queue_close(Output handle, const QueueCloseOptions& options, Site site) {
  NodeSpec node{.op = "QueueClose"};
  node.inputs = {handle};
  node.attrs.emplace("cancel_pending", options.cancel_pending);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Output queue_size(Output handle, Site site) {
  NodeSpec node{.op = "QueueSize"};
  node.inputs = {handle};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rfft(Output x, const RFFTOptions& options, Site site) {
  NodeSpec node{.op = "RFFT"};
  node.inputs = {x};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rfft2d(Output x, const RFFT2DOptions& options, Site site) {
  NodeSpec node{.op = "RFFT2D"};
  node.inputs = {x};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rfft2d_grad(Output dy, Output shape, const RFFT2DGradOptions& options, Site site) {
  NodeSpec node{.op = "RFFT2DGrad"};
  node.inputs = {dy, shape};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rfft3d(Output x, const RFFT3DOptions& options, Site site) {
  NodeSpec node{.op = "RFFT3D"};
  node.inputs = {x};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rfft3d_grad(Output dy, Output shape, const RFFT3DGradOptions& options, Site site) {
  NodeSpec node{.op = "RFFT3DGrad"};
  node.inputs = {dy, shape};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rfft_grad(Output dy, Output shape, const RFFTGradOptions& options, Site site) {
  NodeSpec node{.op = "RFFTGrad"};
  node.inputs = {dy, shape};
  node.attrs.emplace("fft_length", options.fft_length);
  node.attrs.emplace("norm", options.norm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output random_gamma(Output alpha, Site site) {
  NodeSpec node{.op = "RandomGamma"};
  node.inputs = {alpha};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output random_order(Output like, Site site) {
  NodeSpec node{.op = "RandomOrder"};
  node.inputs = {like};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output random_poisson(Output rate, Site site) {
  NodeSpec node{.op = "RandomPoisson"};
  node.inputs = {rate};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output random_shuffle_queue(GraphBuilder& g, std::vector<DType> types,
    const RandomShuffleQueueOptions& options, Site site) {
  NodeSpec node{.op = "RandomShuffleQueue"};
  node.attrs.emplace("types", std::move(types));
  node.attrs.emplace("shapes", options.shapes);
  node.attrs.emplace("capacity", options.capacity);
  node.attrs.emplace("min_after_dequeue", options.min_after_dequeue);
  node.attrs.emplace("seed", options.seed);
  node.attrs.emplace("container", options.container);
  node.attrs.emplace("shared_name", options.shared_name);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Output random_standard_normal(GraphBuilder& g, PartialShape shape,
    const RandomStandardNormalOptions& options, Site site) {
  NodeSpec node{.op = "RandomStandardNormal"};
  node.attrs.emplace("T", options.dtype);
  node.attrs.emplace("shape", std::move(shape));
  node.attrs.emplace("mean", options.mean);
  node.attrs.emplace("stddev", options.stddev);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Output random_standard_normal_like(Output like, const RandomStandardNormalLikeOptions& options,
    Site site) {
  NodeSpec node{.op = "RandomStandardNormalLike"};
  node.inputs = {like};
  node.attrs.emplace("mean", options.mean);
  node.attrs.emplace("stddev", options.stddev);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output random_uniform(GraphBuilder& g, PartialShape shape, const RandomUniformOptions& options,
    Site site) {
  NodeSpec node{.op = "RandomUniform"};
  node.attrs.emplace("T", options.dtype);
  node.attrs.emplace("shape", std::move(shape));
  node.attrs.emplace("low", options.low);
  node.attrs.emplace("high", options.high);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Output random_uniform_int(GraphBuilder& g, PartialShape shape, std::int64_t high,
    const RandomUniformIntOptions& options, Site site) {
  NodeSpec node{.op = "RandomUniformInt"};
  node.attrs.emplace("T", options.dtype);
  node.attrs.emplace("shape", std::move(shape));
  node.attrs.emplace("low", options.low);
  node.attrs.emplace("high", high);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

Output random_uniform_like(Output like, const RandomUniformLikeOptions& options, Site site) {
  NodeSpec node{.op = "RandomUniformLike"};
  node.inputs = {like};
  node.attrs.emplace("low", options.low);
  node.attrs.emplace("high", options.high);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output range(Output start, Output limit, Output delta, Site site) {
  NodeSpec node{.op = "Range"};
  node.inputs = {start, limit, delta};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rank(Output x, const RankOptions& options, Site site) {
  NodeSpec node{.op = "Rank"};
  node.inputs = {x};
  node.attrs.emplace("out_type", options.out_type);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output read_variable(Output handle, DType dtype, Site site) {
  NodeSpec node{.op = "ReadVariable"};
  node.inputs = {handle};
  node.attrs.emplace("T", dtype);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output real(Output z, Site site) {
  NodeSpec node{.op = "Real"};
  node.inputs = {z};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output reciprocal(Output x, Site site) {
  NodeSpec node{.op = "Reciprocal"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output reciprocal_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "ReciprocalGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output relu(Output x, Site site) {
  NodeSpec node{.op = "Relu"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output relu6(Output x, Site site) {
  NodeSpec node{.op = "Relu6"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output relu6_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "Relu6Grad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output relu_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "ReluGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output replica_mean(const std::vector<Output>& parts, Site site) {
  NodeSpec node{.op = "ReplicaMean"};
  node.inputs = flat_inputs({parts});
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output reshape(Output x, Output shape, Site site) {
  NodeSpec node{.op = "Reshape"};
  node.inputs = {x, shape};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output resize(Output x, Output size, const ResizeOptions& options, Site site) {
  NodeSpec node{.op = "Resize"};
  node.inputs = {x, size};
  node.attrs.emplace("method", options.method);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output resize_grad(Output dy, Output shape, const ResizeGradOptions& options, Site site) {
  NodeSpec node{.op = "ResizeGrad"};
  node.inputs = {dy, shape};
  node.attrs.emplace("method", options.method);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

std::vector<Output> restore(Output prefix, std::vector<std::string> names,
    std::vector<DType> types, const RestoreOptions& options, Site site) {
  NodeSpec node{.op = "Restore"};
  node.inputs = {prefix};
  node.attrs.emplace("names", std::move(names));
  node.attrs.emplace("shapes", options.shapes);
  node.attrs.emplace("types", std::move(types));
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

Output reverse(Output x, const ReverseOptions& options, Site site) {
  NodeSpec node{.op = "Reverse"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output reverse_sequence(Output x, Output lengths, const ReverseSequenceOptions& options,
    Site site) {
  NodeSpec node{.op = "ReverseSequence"};
  node.inputs = {x, lengths};
  node.attrs.emplace("axis", options.axis);
  node.attrs.emplace("batch_axis", options.batch_axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output right_shift(const Operand& x, const Operand& bits, Site site) {
  NodeSpec node{.op = "RightShift"};
  node.inputs = {value_beside(x, {&x, &bits}, site), value_beside(bits, {&x, &bits}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output roll(Output x, std::vector<std::int64_t> shift, std::vector<std::int64_t> axes, Site site) {
  NodeSpec node{.op = "Roll"};
  node.inputs = {x};
  node.attrs.emplace("shift", std::move(shift));
  node.attrs.emplace("axes", std::move(axes));
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output round(Output x, Site site) {
  NodeSpec node{.op = "Round"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rsqrt(Output x, Site site) {
  NodeSpec node{.op = "Rsqrt"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output rsqrt_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "RsqrtGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Op save(Output prefix, const std::vector<Output>& tensors, std::vector<std::string> names,
    Site site) {
  NodeSpec node{.op = "Save"};
  node.inputs = flat_inputs({prefix, tensors});
  node.attrs.emplace("names", std::move(names));
  node.site = std::move(site);
  return add_node(std::move(node));
}

Output scalar_summary(Output x, std::vector<std::string> tags, Site site) {
  NodeSpec node{.op = "ScalarSummary"};
  node.inputs = {x};
  node.attrs.emplace("tags", std::move(tags));
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output scale_rows(Output x, Output scale, Site site) {
  NodeSpec node{.op = "ScaleRows"};
  node.inputs = {x, scale};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Op scatter_add(Output var, Output indices, Output rows, const ScatterAddOptions& options,
    Site site) {
  NodeSpec node{.op = "ScatterAdd"};
  node.inputs = {var, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Output scatter_along(Output dy, Output indices, Output shape, const ScatterAlongOptions& options,
    Site site) {
  NodeSpec node{.op = "ScatterAlong"};
  node.inputs = {dy, indices, shape};
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output scatter_nd(Output indices, Output updates, Output shape, Site site) {
  NodeSpec node{.op = "ScatterNd"};
  node.inputs = {indices, updates, shape};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Op scatter_sub(Output var, Output indices, Output rows, const ScatterSubOptions& options,
    Site site) {
  NodeSpec node{.op = "ScatterSub"};
  node.inputs = {var, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Op scatter_update(Output var, Output indices, Output rows, const ScatterUpdateOptions& options,
    Site site) {
  NodeSpec node{.op = "ScatterUpdate"};
  node.inputs = {var, indices, rows};
  node.attrs.emplace("replicas", options.replicas);
  node.site = std::move(site);
  return add_node(std::move(node));
}

Output search_sorted(Output sequence, Output values, const SearchSortedOptions& options,
    Site site) {
  NodeSpec node{.op = "SearchSorted"};
  node.inputs = {sequence, values};
  node.attrs.emplace("right", options.right);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output segment_max(Output data, Output segment_ids, Site site) {
  NodeSpec node{.op = "SegmentMax"};
  node.inputs = {data, segment_ids};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output segment_mean(Output data, Output segment_ids, Site site) {
  NodeSpec node{.op = "SegmentMean"};
  node.inputs = {data, segment_ids};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output segment_min(Output data, Output segment_ids, Site site) {
  NodeSpec node{.op = "SegmentMin"};
  node.inputs = {data, segment_ids};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output segment_prod(Output data, Output segment_ids, Site site) {
  NodeSpec node{.op = "SegmentProd"};
  node.inputs = {data, segment_ids};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output segment_sum(Output data, Output segment_ids, Site site) {
  NodeSpec node{.op = "SegmentSum"};
  node.inputs = {data, segment_ids};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output select(Output condition, const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Select"};
  node.inputs = {condition, value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

SelfAdjointEigOutputs self_adjoint_eig(Output x, Site site) {
  NodeSpec node{.op = "SelfAdjointEig"};
  node.inputs = {x};
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output selu(Output x, Site site) {
  NodeSpec node{.op = "Selu"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output selu_grad(Output dy, Output x, Site site) {
  NodeSpec node{.op = "SeluGrad"};
  node.inputs = {dy, x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output shape(Output x, const ShapeOptions& options, Site site) {
  NodeSpec node{.op = "Shape"};
  node.inputs = {x};
  node.attrs.emplace("out_type", options.out_type);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output shift(Output x, std::int64_t by, const ShiftOptions& options, Site site) {
  NodeSpec node{.op = "Shift"};
  node.inputs = {x};
  node.attrs.emplace("by", by);
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sigmoid(Output x, Site site) {
  NodeSpec node{.op = "Sigmoid"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sigmoid_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "SigmoidGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sign(Output x, Site site) {
  NodeSpec node{.op = "Sign"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sin(Output x, Site site) {
  NodeSpec node{.op = "Sin"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sinh(Output x, Site site) {
  NodeSpec node{.op = "Sinh"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output size(Output x, const SizeOptions& options, Site site) {
  NodeSpec node{.op = "Size"};
  node.inputs = {x};
  node.attrs.emplace("out_type", options.out_type);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output slice(Output x, Output begin, Output size, Site site) {
  NodeSpec node{.op = "Slice"};
  node.inputs = {x, begin, size};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output slice_add(Output sums, Output dy, Output begin, Output shape, Site site) {
  NodeSpec node{.op = "SliceAdd"};
  node.inputs = {sums, dy, begin, shape};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output slice_grad(Output dy, Output begin, Output shape, Site site) {
  NodeSpec node{.op = "SliceGrad"};
  node.inputs = {dy, begin, shape};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output softmax(Output logits, Site site) {
  NodeSpec node{.op = "Softmax"};
  node.inputs = {logits};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

SoftmaxCrossEntropyWithLogitsOutputs softmax_cross_entropy_with_logits(Output logits,
    Output labels, Site site) {
  NodeSpec node{.op = "SoftmaxCrossEntropyWithLogits"};
  node.inputs = {logits, labels};
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output softmax_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "SoftmaxGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output softplus(Output x, Site site) {
  NodeSpec node{.op = "Softplus"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output softplus_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "SoftplusGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output softsign(Output x, Site site) {
  NodeSpec node{.op = "Softsign"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output softsign_grad(Output dy, Output x, Site site) {
  NodeSpec node{.op = "SoftsignGrad"};
  node.inputs = {dy, x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

SortOutputs sort(Output x, const SortOptions& options, Site site) {
  NodeSpec node{.op = "Sort"};
  node.inputs = {x};
  node.attrs.emplace("axis", options.axis);
  node.attrs.emplace("descending", options.descending);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

SparseSoftmaxCrossEntropyWithLogitsOutputs sparse_softmax_cross_entropy_with_logits(
    Output logits, Output labels, Site site) {
  NodeSpec node{.op = "SparseSoftmaxCrossEntropyWithLogits"};
  node.inputs = {logits, labels};
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

std::vector<Output> split(Output x, std::int64_t n, const SplitOptions& options, Site site) {
  NodeSpec node{.op = "Split"};
  node.inputs = {x};
  node.attrs.emplace("axis", options.axis);
  node.attrs.emplace("N", n);
  node.attrs.emplace("sizes", options.sizes);
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

Output spread(Output dy, Output shape, const SpreadOptions& options, Site site) {
  NodeSpec node{.op = "Spread"};
  node.inputs = {dy, shape};
  node.attrs.emplace("axes", options.axes);
  node.attrs.emplace("mean", options.mean);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sqrt(Output x, Site site) {
  NodeSpec node{.op = "Sqrt"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sqrt_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "SqrtGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output square(Output x, Site site) {
  NodeSpec node{.op = "Square"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output squared_difference(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "SquaredDifference"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output squeeze(Output x, const SqueezeOptions& options, Site site) {
  NodeSpec node{.op = "Squeeze"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output stop_gradient(Output x, Site site) {
  NodeSpec node{.op = "StopGradient"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output strided_slice(Output x, Output begin, Output end, Output strides,
    const StridedSliceOptions& options, Site site) {
  NodeSpec node{.op = "StridedSlice"};
  node.inputs = {x, begin, end, strides};
  node.attrs.emplace("begin_mask", options.begin_mask);
  node.attrs.emplace("end_mask", options.end_mask);
  node.attrs.emplace("ellipsis_mask", options.ellipsis_mask);
  node.attrs.emplace("new_axis_mask", options.new_axis_mask);
  node.attrs.emplace("shrink_axis_mask", options.shrink_axis_mask);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output strided_slice_add(Output sums, Output dy, Output shape, Output begin, Output end,
    Output strides, const StridedSliceAddOptions& options, Site site) {
  NodeSpec node{.op = "StridedSliceAdd"};
  node.inputs = {sums, dy, shape, begin, end, strides};
  node.attrs.emplace("begin_mask", options.begin_mask);
  node.attrs.emplace("end_mask", options.end_mask);
  node.attrs.emplace("ellipsis_mask", options.ellipsis_mask);
  node.attrs.emplace("new_axis_mask", options.new_axis_mask);
  node.attrs.emplace("shrink_axis_mask", options.shrink_axis_mask);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output strided_slice_grad(Output dy, Output shape, Output begin, Output end, Output strides,
    const StridedSliceGradOptions& options, Site site) {
  NodeSpec node{.op = "StridedSliceGrad"};
  node.inputs = {dy, shape, begin, end, strides};
  node.attrs.emplace("begin_mask", options.begin_mask);
  node.attrs.emplace("end_mask", options.end_mask);
  node.attrs.emplace("ellipsis_mask", options.ellipsis_mask);
  node.attrs.emplace("new_axis_mask", options.new_axis_mask);
  node.attrs.emplace("shrink_axis_mask", options.shrink_axis_mask);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output string_hash(Output x, std::int64_t buckets, const StringHashOptions& options, Site site) {
  NodeSpec node{.op = "StringHash"};
  node.inputs = {x};
  node.attrs.emplace("buckets", buckets);
  node.attrs.emplace("seed", options.seed);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output string_join(const std::vector<Output>& values, const StringJoinOptions& options, Site site) {
  NodeSpec node{.op = "StringJoin"};
  node.inputs = flat_inputs({values});
  node.attrs.emplace("separator", options.separator);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

StringSplitOutputs string_split(Output x, const StringSplitOptions& options, Site site) {
  NodeSpec node{.op = "StringSplit"};
  node.inputs = {x};
  node.attrs.emplace("separator", options.separator);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output string_to_number(Output x, const StringToNumberOptions& options, Site site) {
  NodeSpec node{.op = "StringToNumber"};
  node.inputs = {x};
  node.attrs.emplace("out_type", options.out_type);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sub(const Operand& a, const Operand& b, Site site) {
  NodeSpec node{.op = "Sub"};
  node.inputs = {value_beside(a, {&a, &b}, site), value_beside(b, {&a, &b}, site)};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sum(Output x, const SumOptions& options, Site site) {
  NodeSpec node{.op = "Sum"};
  node.inputs = {x};
  node.attrs.emplace("axes", options.axes);
  node.attrs.emplace("keep_dims", options.keep_dims);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sum_to_shape(Output x, PartialShape shape, Site site) {
  NodeSpec node{.op = "SumToShape"};
  node.inputs = {x};
  node.attrs.emplace("shape", std::move(shape));
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output sum_to_shape_of(Output x, Output like, Site site) {
  NodeSpec node{.op = "SumToShapeOf"};
  node.inputs = {x, like};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

SvdOutputs svd(Output x, Site site) {
  NodeSpec node{.op = "Svd"};
  node.inputs = {x};
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

Output take_along(Output x, Output indices, const TakeAlongOptions& options, Site site) {
  NodeSpec node{.op = "TakeAlong"};
  node.inputs = {x, indices};
  node.attrs.emplace("axis", options.axis);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output tan(Output x, Site site) {
  NodeSpec node{.op = "Tan"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output tanh(Output x, Site site) {
  NodeSpec node{.op = "Tanh"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output tanh_grad(Output dy, Output y, Site site) {
  NodeSpec node{.op = "TanhGrad"};
  node.inputs = {dy, y};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output text_summary(Output x, std::string tag, Site site) {
  NodeSpec node{.op = "TextSummary"};
  node.inputs = {x};
  node.attrs.emplace("tag", std::move(tag));
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output tile(Output x, std::vector<std::int64_t> multiples, Site site) {
  NodeSpec node{.op = "Tile"};
  node.inputs = {x};
  node.attrs.emplace("multiples", std::move(multiples));
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output tile_grad(Output dy, Output shape, std::vector<std::int64_t> multiples, Site site) {
  NodeSpec node{.op = "TileGrad"};
  node.inputs = {dy, shape};
  node.attrs.emplace("multiples", std::move(multiples));
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

TopKOutputs top_k(Output x, std::int64_t k, Site site) {
  NodeSpec node{.op = "TopK"};
  node.inputs = {x};
  node.attrs.emplace("k", k);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1)};
}

Output transpose(Output x, const TransposeOptions& options, Site site) {
  NodeSpec node{.op = "Transpose"};
  node.inputs = {x};
  node.attrs.emplace("perm", options.perm);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output truncated_normal(GraphBuilder& g, PartialShape shape,
    const TruncatedNormalOptions& options, Site site) {
  NodeSpec node{.op = "TruncatedNormal"};
  node.attrs.emplace("T", options.dtype);
  node.attrs.emplace("shape", std::move(shape));
  node.attrs.emplace("mean", options.mean);
  node.attrs.emplace("stddev", options.stddev);
  node.site = std::move(site);
  return g.add(std::move(node)).output();
}

UniformCandidateSamplerOutputs uniform_candidate_sampler(Output true_classes, std::int64_t n,
    std::int64_t range_max, const UniformCandidateSamplerOptions& options, Site site) {
  NodeSpec node{.op = "UniformCandidateSampler"};
  node.inputs = {true_classes};
  node.attrs.emplace("Tcount", options.tcount);
  node.attrs.emplace("n", n);
  node.attrs.emplace("range_max", range_max);
  node.attrs.emplace("unique", options.unique);
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

UniqueOutputs unique(Output x, Site site) {
  NodeSpec node{.op = "Unique"};
  node.inputs = {x};
  node.site = std::move(site);
  Op op = add_node(std::move(node));
  return {op.output(0), op.output(1), op.output(2)};
}

std::vector<Output> unpack(Output x, std::int64_t n, const UnpackOptions& options, Site site) {
  NodeSpec node{.op = "Unpack"};
  node.inputs = {x};
  node.attrs.emplace("axis", options.axis);
  node.attrs.emplace("N", n);
  node.site = std::move(site);
  return add_node(std::move(node)).outputs();
}

Output unsorted_segment_max(Output data, Output segment_ids, Output num_segments, Site site) {
  NodeSpec node{.op = "UnsortedSegmentMax"};
  node.inputs = {data, segment_ids, num_segments};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output unsorted_segment_mean(Output data, Output segment_ids, Output num_segments, Site site) {
  NodeSpec node{.op = "UnsortedSegmentMean"};
  node.inputs = {data, segment_ids, num_segments};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output unsorted_segment_min(Output data, Output segment_ids, Output num_segments, Site site) {
  NodeSpec node{.op = "UnsortedSegmentMin"};
  node.inputs = {data, segment_ids, num_segments};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output unsorted_segment_prod(Output data, Output segment_ids, Output num_segments, Site site) {
  NodeSpec node{.op = "UnsortedSegmentProd"};
  node.inputs = {data, segment_ids, num_segments};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output unsorted_segment_sum(Output data, Output segment_ids, Output num_segments, Site site) {
  NodeSpec node{.op = "UnsortedSegmentSum"};
  node.inputs = {data, segment_ids, num_segments};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output vocabulary_index(Output x, Tensor words, const VocabularyIndexOptions& options, Site site) {
  NodeSpec node{.op = "VocabularyIndex"};
  node.inputs = {x};
  node.attrs.emplace("words", std::move(words));
  node.attrs.emplace("missing", options.missing);
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output where(Output condition, Site site) {
  NodeSpec node{.op = "Where"};
  node.inputs = {condition};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

Output zeros_like(Output x, Site site) {
  NodeSpec node{.op = "ZerosLike"};
  node.inputs = {x};
  node.site = std::move(site);
  return add_node(std::move(node)).output();
}

}  // namespace troupe
