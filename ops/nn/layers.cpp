#include "ops/nn/layers.hpp"

#include "ops/api/math.hpp"
#include "ops/nn/initial.hpp"

namespace troupe::nn {

Linear::Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
               const Options& options, Site site)
    : Module(parent, name), has_bias_(options.bias) {
  check_sizes("Linear", {in, out}, site);
  auto inside = scope().enter();
  w_ = parameter(
      "W", initial_weights(graph(), options.init, {in, out}, in, out, options.dtype, site), site);
  if (has_bias_) b_ = parameter("b", zeros(options.dtype, {out}), site);
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
  if (options.bias) b_ = parameter("b", zeros(options.dtype, {out}), site);
}

Output Conv2d::operator()(Output x, Site site) const {
  auto inside = scope().enter();
  const Output y = conv2d(
      x, w_, {.strides = {options_.stride, options_.stride}, .padding = options_.padding}, site);
  return options_.bias ? bias_add(y, b_, site) : y;
}

Output MaxPool::operator()(Output x, Site site) const { return max_pool(x, size, std::move(site)); }

}  // namespace troupe::nn
