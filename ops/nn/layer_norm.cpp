#include "ops/nn/layer_norm.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/node.hpp"
#include "ops/nn/initial.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

LayerNorm::LayerNorm(Module& parent, std::string_view name, std::int64_t size,
                     const Options& options, Site site)
    : Module(parent, name), epsilon_(options.epsilon) {
  check_sizes("LayerNorm", {size}, site);
  auto inside = scope().enter();
  const Tensor zero = zeros(options.dtype, {size}, site);
  scale_ = parameter("scale", ones_like(constant(graph(), zero, site), site), site);
  offset_ = parameter("offset", zero, site);
}

Output LayerNorm::operator()(Output x, Site site) const {
  check_given("LayerNorm: x", x, site);
  auto inside = scope().enter();
  x = with_last(x, scale_.shape()[0], site);
  return layer_norm(x, in_dtype_of(scale_, x, site), in_dtype_of(offset_, x, site),
                    {.epsilon = epsilon_}, site);
}

}  // namespace troupe::nn
