#include "troupe/ops/nn/layers.hpp"

#include <cmath>

#include "troupe/ops/api/constant.hpp"
#include "troupe/ops/api/math.hpp"

namespace troupe::nn {

namespace {

Tensor zeros(DType dtype, std::int64_t size) {
  return value_or_throw(Tensor::zeros(dtype, Shape{size}));
}

void check_sizes(std::string_view what, std::initializer_list<std::int64_t> sizes,
                 const Site& site) {
  for (std::int64_t size : sizes)
    if (size < 1)
      throw Error(
          invalid_argument(std::string(what) + ": sizes are positive, not " + std::to_string(size))
              .at(site));
}

}  // namespace

Output initial_weights(GraphBuilder& g, Init init, const Shape& shape, std::int64_t fan_in,
                       std::int64_t fan_out, DType dtype, Site site) {
  if (init == Init::he)
    return truncated_normal(g, shape, {.dtype = dtype, .stddev = std::sqrt(2.0 / double(fan_in))},
                            std::move(site));
  const double reach = std::sqrt(6.0 / double(fan_in + fan_out));
  return random_uniform(g, shape, {.dtype = dtype, .low = -reach, .high = reach}, std::move(site));
}

Linear::Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
               const Options& options, Site site)
    : Module(parent, name), has_bias_(options.bias) {
  check_sizes("Linear", {in, out}, site);
  auto inside = scope().enter();
  w_ = parameter(
      "W", initial_weights(graph(), options.init, {in, out}, in, out, options.dtype, site), site);
  if (has_bias_) b_ = parameter("b", zeros(options.dtype, out), site);
}

Output Linear::operator()(Output x, Site site) const {
  auto inside = scope().enter();
  if (x.shape().known_rank() && x.shape().rank() > 2) x = flatten(x, site);
  const Output y = mat_mul(x, w_, {}, site);
  return has_bias_ ? bias_add(y, b_, site) : y;
}

Conv2d::Conv2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
               std::int64_t kernel, const Options& options, Site site)
    : Module(parent, name), options_(options) {
  check_sizes("Conv2d", {in, out, kernel, options.stride}, site);
  auto inside = scope().enter();
  const std::int64_t window = kernel * kernel;
  w_ = parameter("W",
                 initial_weights(graph(), options.init, {kernel, kernel, in, out}, window * in,
                                 window * out, options.dtype, site),
                 site);
  if (options.bias) b_ = parameter("b", zeros(options.dtype, out), site);
}

Output Conv2d::operator()(Output x, Site site) const {
  auto inside = scope().enter();
  const Output y = conv2d(
      x, w_, {.strides = {options_.stride, options_.stride}, .padding = options_.padding}, site);
  return options_.bias ? bias_add(y, b_, site) : y;
}

BatchNorm::BatchNorm(Module& parent, std::string_view name, std::int64_t channels,
                     const Options& options, Site site)
    : Module(parent, name), options_(options) {
  check_sizes("BatchNorm", {channels}, site);
  if (!(options.momentum >= 0 && options.momentum < 1))
    throw Error(invalid_argument("BatchNorm: the momentum is in [0, 1)").at(site));
  auto inside = scope().enter();
  const Tensor zero = zeros(options.dtype, channels);
  const Output one = ones_like(constant(graph(), zero, site), site);
  VariableOptions average;
  average.trainable = false;
  scale_ = parameter("scale", one, site);
  offset_ = parameter("offset", zero, site);
  mean_ = parameter("moving_mean", zero, site, average);
  variance_ = parameter("moving_variance", one, site, average);
}

BatchNorm::Training BatchNorm::train(Output x, Site site) const {
  auto inside = scope().enter();
  const FusedBatchNormOutputs norm =
      fused_batch_norm(x, scale_, offset_, mean_, variance_,
                       {.epsilon = options_.epsilon, .is_training = true}, site);
  const auto towards = [&](const Variable& average, Output batch) {
    const Output rate =
        cast(constant(graph(), Tensor::scalar(1 - options_.momentum), site), average.dtype(), site);
    // A descent rather than an AssignAdd: of several replicas the mean moves the average, not the
    // sum.
    return apply_gradient_descent(average.handle(), rate, sub(average, batch, site), {}, site);
  };
  return {norm.y,
          group(graph(), {towards(mean_, norm.batch_mean), towards(variance_, norm.batch_variance)},
                "update", site)};
}

Output BatchNorm::operator()(Output x, Site site) const {
  auto inside = scope().enter();
  return fused_batch_norm(x, scale_, offset_, mean_, variance_,
                          {.epsilon = options_.epsilon, .is_training = false}, site)
      .y;
}

Output MaxPool::operator()(Output x, Site site) const { return max_pool(x, size, std::move(site)); }

}  // namespace troupe::nn
