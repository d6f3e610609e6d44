#include "ops/nn/layer_norm.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/operators.hpp"
#include "ops/nn/initial.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

LayerNorm::LayerNorm(Module& parent, std::string_view name, std::int64_t size,
                     const Options& options, Site site)
    : Module(parent, name), epsilon_(options.epsilon) {
  check_sizes("LayerNorm", {size}, site);
  auto inside = scope().enter();
  const Tensor zero = zeros(options.dtype, {size});
  scale_ = parameter("scale", ones_like(constant(graph(), zero, site), site), site);
  offset_ = parameter("offset", zero, site);
}

Output LayerNorm::operator()(Output x, Site site) const {
  auto inside = scope().enter();
  x = with_last(x, scale_.shape()[0], site);
  const Output mean = troupe::mean(x, {.axes = {-1}, .keep_dims = true}, site);
  const Output apart = sub(x, mean, site);
  const Output variance =
      troupe::mean(square(apart, site), {.axes = {-1}, .keep_dims = true}, site);
  const Output inverse = rsqrt(Operand(variance, site) + Operand(epsilon_, site), site);
  return add(mul(mul(apart, inverse, site), scale_, site), offset_, site);
}

}  // namespace troupe::nn
