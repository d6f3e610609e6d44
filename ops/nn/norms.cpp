#include "ops/nn/norms.hpp"

#include "ops/api/node.hpp"
#include "ops/api/norms.hpp"
#include "ops/nn/initial.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

namespace {

Output ones_of(GraphBuilder& g, std::int64_t size, DType dtype, const Site& site) {
  return initial_weights(g, Init::constant(1), {size}, 1, 1, dtype, site);
}

}  // namespace

GroupNorm::GroupNorm(Module& parent, std::string_view name, std::int64_t groups,
                     std::int64_t channels, const Options& options, Site site)
    : Module(parent, name), groups_(groups), epsilon_(options.epsilon) {
  check_sizes("GroupNorm", {groups, channels}, site);
  check_groups("GroupNorm", channels, channels, groups, site);
  auto inside = scope().enter();
  scale_ = parameter("scale", ones_of(graph(), channels, options.dtype, site), site);
  offset_ = parameter("offset", zeros(options.dtype, {channels}, site), site);
}

Output GroupNorm::operator()(Output x, Site site) const {
  check_given("GroupNorm: x", x, site);
  auto inside = scope().enter();
  x = with_last(x, scale_.shape()[0], site);
  return group_norm(x, in_dtype_of(scale_, x, site), in_dtype_of(offset_, x, site), groups_,
                    {.epsilon = epsilon_}, site);
}

RmsNorm::RmsNorm(Module& parent, std::string_view name, std::int64_t size, const Options& options,
                 Site site)
    : Module(parent, name), epsilon_(options.epsilon) {
  check_sizes("RmsNorm", {size}, site);
  auto inside = scope().enter();
  scale_ = parameter("scale", ones_of(graph(), size, options.dtype, site), site);
}

Output RmsNorm::operator()(Output x, Site site) const {
  check_given("RmsNorm: x", x, site);
  auto inside = scope().enter();
  x = with_last(x, scale_.shape()[0], site);
  return rms_norm(x, scale_, {.epsilon = epsilon_}, site);
}

}  // namespace troupe::nn
