#include "ops/nn/batch_norm.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/moving_average.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/wide.hpp"
#include "ops/nn/initial.hpp"

namespace troupe::nn {

BatchNorm::BatchNorm(Module& parent, std::string_view name, std::int64_t channels,
                     const Options& options, Site site)
    : Module(parent, name), options_(options) {
  check_sizes("BatchNorm", {channels}, site);
  if (!(options.momentum >= 0 && options.momentum < 1))
    throw Error(invalid_argument("BatchNorm: the momentum is in [0, 1)").at(site));
  auto inside = scope().enter();
  const Tensor zero = zeros(detail::wide(options.dtype), {channels}, site);
  const Output one = ones_like(constant(graph(), zero, site), site);
  VariableOptions average;
  average.trainable = false;
  scale_ = parameter("scale", one, site);
  offset_ = parameter("offset", zero, site);
  mean_ = parameter("moving_mean", zero, site, average);
  variance_ = parameter("moving_variance", one, site, average);
}

Output BatchNorm::operator()(Output x, Site site) const {
  check_given("BatchNorm: x", x, site);
  auto inside = scope().enter();
  const FusedBatchNormOutputs norm =
      fused_batch_norm(detail::wide(x, site), scale_, offset_, mean_, variance_,
                       {.epsilon = options_.epsilon, .is_training = training()}, site);
  if (training()) {
    move_average(mean_, 1 - options_.momentum, norm.batch_mean, site);
    move_average(variance_, 1 - options_.momentum, norm.batch_variance, site);
  }
  return detail::narrow(norm.y, x.dtype(), site);
}

}  // namespace troupe::nn
