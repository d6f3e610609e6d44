#include "ops/nn/convolutions.hpp"

#include "ops/api/convolution.hpp"
#include "ops/api/node.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

void Filtering::make(Output filter, std::int64_t out, bool bias, DType dtype, const Site& site) {
  w_ = parameter("W", filter, site);
  has_bias_ = bias;
  if (bias) b_ = parameter("b", zeros(dtype, {out}, site), site);
}

Output Filtering::with_bias(Output y, const Site& site) const {
  return has_bias_ ? bias_add(y, in_dtype_of(b_, y, site), site) : y;
}

namespace {

// Also vouches for the products of some of these sizes: the fans.
Shape filter_shape_of(const std::vector<std::int64_t>& sizes, const Site& site) {
  auto shape = Shape::make(sizes);
  if (!shape.ok()) throw Error(shape.status().at(site));
  return *shape;
}

// How far a filter reaches back from where it stands.
std::int64_t reach_back(std::int64_t kernel, std::int64_t dilation, const Site& site) {
  std::int64_t reach = 0;
  if (!__builtin_mul_overflow(kernel - 1, dilation, &reach)) return reach;
  throw Error(invalid_argument("Conv1d: the dilated filter is too long").at(site));
}

}  // namespace

Conv1d::Conv1d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
               std::int64_t kernel, const Options& options, Site site)
    : Filtering(parent, name), options_(options) {
  check_sizes("Conv1d", {in, out, kernel, options.stride, options.dilation, options.groups}, site);
  check_groups("Conv1d", in, out, options.groups, site);
  const std::int64_t part = in / options.groups;
  const Shape shape = filter_shape_of({kernel, part, out}, site);
  if (options.padding == "CAUSAL") {
    if (!options.explicit_paddings.empty())
      throw Error(
          invalid_argument("Conv1d: explicit_paddings are for padding EXPLICIT, and it is CAUSAL")
              .at(site));
    options_.padding = "EXPLICIT";
    options_.explicit_paddings = {reach_back(kernel, options.dilation, site), 0};
  }
  auto inside = scope().enter();
  make(initial_weights(graph(), options.init, shape, kernel * part, kernel * (out / options.groups),
                       options.dtype, site),
       out, options.bias, options.dtype, site);
}

Output Conv1d::operator()(Output x, Site site) const {
  check_given("Conv1d: x", x, site);
  auto inside = scope().enter();
  return with_bias(conv1d(x, in_dtype_of(w_, x, site),
                          {.stride = options_.stride,
                           .padding = options_.padding,
                           .explicit_paddings = options_.explicit_paddings,
                           .dilation = options_.dilation,
                           .groups = options_.groups},
                          site),
                   site);
}

Conv3d::Conv3d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
               std::int64_t kernel, const Options& options, Site site)
    : Filtering(parent, name), options_(options) {
  check_sizes("Conv3d", {in, out, kernel, options.stride, options.dilation, options.groups}, site);
  check_groups("Conv3d", in, out, options.groups, site);
  auto inside = scope().enter();
  const std::int64_t part = in / options.groups;
  const Shape shape = filter_shape_of({kernel, kernel, kernel, part, out}, site);
  const std::int64_t window = kernel * kernel * kernel;
  make(initial_weights(graph(), options.init, shape, window * part, window * (out / options.groups),
                       options.dtype, site),
       out, options.bias, options.dtype, site);
}

Output Conv3d::operator()(Output x, Site site) const {
  check_given("Conv3d: x", x, site);
  auto inside = scope().enter();
  const Options& o = options_;
  return with_bias(conv3d(x, in_dtype_of(w_, x, site),
                          {.strides = {o.stride, o.stride, o.stride},
                           .padding = o.padding,
                           .explicit_paddings = o.explicit_paddings,
                           .dilations = {o.dilation, o.dilation, o.dilation},
                           .groups = o.groups},
                          site),
                   site);
}

TransposedFiltering::TransposedFiltering(const char* layer, int dimensions, Module& parent,
                                         std::string_view name, std::int64_t in, std::int64_t out,
                                         std::int64_t kernel, const Options& options,
                                         const Site& site)
    : Filtering(parent, name), options_(options) {
  check_sizes(layer, {in, out, kernel, options.stride, options.dilation, options.groups}, site);
  check_groups(layer, in, out, options.groups, site);
  auto inside = scope().enter();
  const std::int64_t part = out / options.groups;
  std::vector<std::int64_t> sizes(std::size_t(dimensions), kernel);
  sizes.insert(sizes.end(), {part, in});
  const Shape shape = filter_shape_of(sizes, site);
  const std::int64_t window = shape.elements(0, dimensions);
  make(initial_weights(graph(), options.init, shape, window * (in / options.groups), window * part,
                       options.dtype, site),
       out, options.bias, options.dtype, site);
}

Output ConvTranspose1d::operator()(Output x, Site site) const {
  check_given("ConvTranspose1d: x", x, site);
  auto inside = scope().enter();
  const Options& o = options_;
  return with_bias(conv1d_transpose(x, in_dtype_of(w_, x, site),
                                    {.stride = o.stride,
                                     .padding = o.padding,
                                     .explicit_paddings = o.explicit_paddings,
                                     .dilation = o.dilation,
                                     .groups = o.groups,
                                     .output_padding = o.output_padding},
                                    site),
                   site);
}

Output ConvTranspose2d::operator()(Output x, Site site) const {
  check_given("ConvTranspose2d: x", x, site);
  auto inside = scope().enter();
  const Options& o = options_;
  return with_bias(conv2d_transpose(x, in_dtype_of(w_, x, site),
                                    {.strides = {o.stride, o.stride},
                                     .padding = o.padding,
                                     .explicit_paddings = o.explicit_paddings,
                                     .dilations = {o.dilation, o.dilation},
                                     .groups = o.groups,
                                     .output_padding = {o.output_padding, o.output_padding}},
                                    site),
                   site);
}

Output ConvTranspose3d::operator()(Output x, Site site) const {
  check_given("ConvTranspose3d: x", x, site);
  auto inside = scope().enter();
  const Options& o = options_;
  return with_bias(
      conv3d_transpose(x, in_dtype_of(w_, x, site),
                       {.strides = {o.stride, o.stride, o.stride},
                        .padding = o.padding,
                        .explicit_paddings = o.explicit_paddings,
                        .dilations = {o.dilation, o.dilation, o.dilation},
                        .groups = o.groups,
                        .output_padding = {o.output_padding, o.output_padding, o.output_padding}},
                       site),
      site);
}

DepthwiseConv2d::DepthwiseConv2d(Module& parent, std::string_view name, std::int64_t channels,
                                 std::int64_t kernel, const Options& options, Site site)
    : Filtering(parent, name), options_(options) {
  check_sizes("DepthwiseConv2d",
              {channels, kernel, options.filters, options.stride, options.dilation}, site);
  auto inside = scope().enter();
  const Shape shape = filter_shape_of({kernel, kernel, channels, options.filters}, site);
  const std::int64_t window = kernel * kernel;
  make(initial_weights(graph(), options.init, shape, window, window * options.filters,
                       options.dtype, site),
       channels * options.filters, options.bias, options.dtype, site);
}

Output DepthwiseConv2d::operator()(Output x, Site site) const {
  check_given("DepthwiseConv2d: x", x, site);
  auto inside = scope().enter();
  return with_bias(depthwise_conv2d(x, in_dtype_of(w_, x, site),
                                    {.strides = {options_.stride, options_.stride},
                                     .padding = options_.padding,
                                     .explicit_paddings = options_.explicit_paddings,
                                     .dilations = {options_.dilation, options_.dilation}},
                                    site),
                   site);
}

}  // namespace troupe::nn
