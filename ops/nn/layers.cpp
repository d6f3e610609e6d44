#include "ops/nn/layers.hpp"

#include <array>

#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/nn/initial.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

Linear::Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
               const Options& options, Site site)
    : Module(parent, name), has_bias_(options.bias) {
  check_sizes("Linear", {in, out}, site);
  auto inside = scope().enter();
  w_ = parameter(
      "W", initial_weights(graph(), options.init, {in, out}, in, out, options.dtype, site), site);
  if (has_bias_) b_ = parameter("b", zeros(options.dtype, {out}, site), site);
}

namespace {

// Of all dimensions but the first; -1 where one is not known.
std::int64_t elements_of_one(const PartialShape& shape) {
  std::int64_t size = 1;
  for (int i = 1; i < shape.rank(); ++i) {
    if (!shape.known(i) || __builtin_mul_overflow(size, std::int64_t(shape[i]), &size)) return -1;
  }
  return size;
}

}  // namespace

Output Linear::operator()(Output x, Site site) const {
  check_given("Linear: x", x, site);
  auto inside = scope().enter();
  const PartialShape& shape = x.empty() ? w_.shape() : x.shape();
  const std::int64_t in = w_.shape()[0];
  if (shape.known_rank() && shape.rank() != 2) {
    const int last = shape.rank() - 1;
    if (last >= 0 && (shape[last] == in || !shape.known(last)))
      return affine(x, in_dtype_of(w_, x, site), has_bias_ ? in_dtype_of(b_, x, site) : Output(),
                    site);
    if (last < 2 || elements_of_one(shape) != in)
      throw Error(invalid_argument("Linear: it takes " + std::to_string(in) + " inputs, and '" +
                                   x.name() + "' is " + shape.text() +
                                   ": neither its last dimension nor the product of all but the "
                                   "first is " +
                                   std::to_string(in))
                      .at(site));
    x = flatten(x, site);
  }
  const Output y = mat_mul(x, in_dtype_of(w_, x, site), {}, site);
  return has_bias_ ? bias_add(y, in_dtype_of(b_, y, site), site) : y;
}

Conv2d::Conv2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
               std::int64_t kernel, const Options& options, Site site)
    : Module(parent, name), options_(options) {
  check_sizes("Conv2d", {in, out, kernel, options.stride, options.dilation, options.groups}, site);
  check_groups("Conv2d", in, out, options.groups, site);
  auto inside = scope().enter();
  const std::int64_t groups = options.groups;
  // Checked before products of some of its sizes, the fans, are computed.
  const auto shape = Shape::make(std::array{kernel, kernel, in / groups, out});
  if (!shape.ok()) throw Error(shape.status().at(site));
  const std::int64_t window = kernel * kernel;
  w_ = parameter("W",
                 initial_weights(graph(), options.init, *shape, window * (in / groups),
                                 window * (out / groups), options.dtype, site),
                 site);
  if (options.bias) b_ = parameter("b", zeros(options.dtype, {out}, site), site);
}

Output Conv2d::operator()(Output x, Site site) const {
  check_given("Conv2d: x", x, site);
  auto inside = scope().enter();
  const Output y = conv2d(x, in_dtype_of(w_, x, site),
                          {.strides = {options_.stride, options_.stride},
                           .padding = options_.padding,
                           .explicit_paddings = options_.explicit_paddings,
                           .dilations = {options_.dilation, options_.dilation},
                           .groups = options_.groups},
                          site);
  return options_.bias ? bias_add(y, in_dtype_of(b_, y, site), site) : y;
}

Output MaxPool::operator()(Output x, Site site) const {
  check_given("MaxPool: x", x, site);
  return max_pool(x, size, std::move(site));
}

}  // namespace troupe::nn
