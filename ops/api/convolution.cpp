#include "ops/api/convolution.hpp"

#include <algorithm>
#include <span>

#include "graph/gradients.hpp"
#include "graph/slicing.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/extent.hpp"

namespace troupe {

namespace {

using Sizes = std::vector<std::int64_t>;

[[noreturn]] void refuse_convolution(std::string what, const Site& site) {
  throw Error(invalid_argument(std::move(what)).at(site));
}

// `values` are `count` numbers of at least `least`, and below 2^31.
void check_numbers(const std::string& what, const Sizes& values, std::size_t count,
                   std::int64_t least, const Site& site) {
  bool fits = values.size() == count;
  for (std::int64_t v : values) fits = fits && v >= least && v < std::int64_t{1} << 31;
  if (fits) return;
  std::string list;
  for (std::int64_t v : values) list += (list.empty() ? "" : ",") + std::to_string(v);
  refuse_convolution(what + ": " + std::to_string(count) + " numbers of at least " +
                         std::to_string(least) + " and below 2^31, not [" + list + "]",
                     site);
}

void check_padding(const std::string& what, const std::string& padding, const Sizes& pads,
                   std::size_t count, const Site& site) {
  if (padding != "SAME" && padding != "VALID" && padding != "EXPLICIT")
    refuse_convolution(what + ": padding is \"" + padding + "\", not SAME, VALID or EXPLICIT",
                       site);
  if (padding == "EXPLICIT") check_numbers(what + ": explicit_paddings", pads, count, 0, site);
  if (padding != "EXPLICIT" && !pads.empty())
    refuse_convolution(what + ": explicit_paddings are for padding EXPLICIT, and it is " + padding,
                       site);
}

// Dimension `axis` of a filter, which must be known.
std::int64_t filter_size(const std::string& what, const Output& filter, int axis,
                         const Site& site) {
  if (filter.shape().known(axis) && filter.shape()[axis] >= 1) return filter.shape()[axis];
  refuse_convolution(
      what + ": the size of the filter must be known and positive, not " + filter.shape().text(),
      site);
}

Output number(GraphBuilder& g, std::int64_t value, const Site& site) {
  return constant<std::int64_t>(g, value, site);
}

// A sequence as pictures of height 1, and back.
Output as_pictures(Output x, const Site& site) { return expand_dims(x, 1, site); }
Output as_sequences(Output y, const Site& site) { return squeeze(y, {.axes = {1}}, site); }
Sizes beside_no_height(const Sizes& pads) {
  return pads.empty() ? pads : Sizes{0, 0, pads[0], pads[1]};
}

}  // namespace

Output conv1d(Output x, Output filter, const Conv1dOptions& options, Site site) {
  detail::check_rank("conv1d: x", x, 3, "[n,w,c]", site);
  detail::check_rank("conv1d: filter", filter, 3, "[w,c,k]", site);
  check_padding("conv1d", options.padding, options.explicit_paddings, 2, site);
  const Output y = conv2d(as_pictures(x, site), expand_dims(filter, 0, site),
                          {.strides = {1, options.stride},
                           .padding = options.padding,
                           .explicit_paddings = beside_no_height(options.explicit_paddings),
                           .dilations = {1, options.dilation},
                           .groups = options.groups},
                          site);
  return as_sequences(y, site);
}

Output conv1d_transpose(Output x, Output filter, const ConvTranspose1dOptions& options, Site site) {
  detail::check_rank("conv1d_transpose: x", x, 3, "[n,w,c]", site);
  detail::check_rank("conv1d_transpose: filter", filter, 3, "[w,k,c]", site);
  check_padding("conv1d_transpose", options.padding, options.explicit_paddings, 2, site);
  ConvTranspose2dOptions of_pictures{
      .strides = {1, options.stride},
      .padding = options.padding,
      .explicit_paddings = beside_no_height(options.explicit_paddings),
      .dilations = {1, options.dilation},
      .groups = options.groups,
      .output_padding = {0, options.output_padding}};
  if (options.output_size != 0) of_pictures.output_size = {1, options.output_size};
  const Output y =
      conv2d_transpose(as_pictures(x, site), expand_dims(filter, 0, site), of_pictures, site);
  return as_sequences(y, site);
}

namespace {

// Padding before and after the planes of a volume.
std::pair<std::int64_t, std::int64_t> depth_padding(const Output& x, std::int64_t reach,
                                                    const Conv3dOptions& options,
                                                    const Site& site) {
  if (options.padding == "VALID") return {0, 0};
  if (options.padding == "EXPLICIT")
    return {options.explicit_paddings[0], options.explicit_paddings[1]};
  const std::int64_t stride = options.strides[0];
  std::int64_t total = reach - 1;
  if (stride != 1) {
    if (!x.shape().known(1))
      refuse_convolution(
          "conv3d: with SAME padding and strides along the depth, the depth must be known, not " +
              x.shape().text(),
          site);
    const std::int64_t in = x.shape()[1], out = (in + stride - 1) / stride;
    total = std::max<std::int64_t>(0, (out - 1) * stride + reach - in);
  }
  return {total / 2, total - total / 2};
}

// [n,d,h,w,parts of c] of [n,d,h,w,c] each, side by side: [n,d,h,w,c of all], where the channels of
// a group stay together.
Output join_channels(const std::vector<Output>& planes, std::int64_t groups, const Site& site) {
  if (planes.size() == 1) return planes[0];
  if (groups == 1) return concat(planes, {.axis = 4}, site);
  const Output& one = planes[0];
  GraphBuilder& g = one.graph();
  Sizes list;
  std::vector<Output> sizes;
  for (int axis = 0; axis < 4; ++axis) sizes.push_back(detail::extent(one, axis, site));
  sizes.push_back(number(g, groups, site));
  sizes.push_back(number(g, one.shape()[4] / groups, site));
  const Output apart = pack(sizes, {}, site);
  std::vector<Output> parts;
  for (const Output& plane : planes) parts.push_back(reshape(plane, apart, site));
  sizes.pop_back();
  sizes.back() = number(g, one.shape()[4] * std::int64_t(planes.size()), site);
  return reshape(concat(parts, {.axis = 5}, site), pack(sizes, {}, site), site);
}

}  // namespace

Output conv3d(Output x, Output filter, const Conv3dOptions& options, Site site) {
  const std::string what = "conv3d";
  detail::check_rank("conv3d: x", x, 5, "[n,d,h,w,c]", site);
  detail::check_rank("conv3d: filter", filter, 5, "[d,h,w,c,k]", site);
  check_padding(what, options.padding, options.explicit_paddings, 6, site);
  check_numbers(what + ": strides", options.strides, 3, 1, site);
  check_numbers(what + ": dilations", options.dilations, 3, 1, site);
  check_numbers(what + ": groups", {options.groups}, 1, 1, site);
  GraphBuilder& g = x.graph();
  const std::int64_t size = filter_size(what, filter, 0, site), stride = options.strides[0],
                     step = options.dilations[0];
  const std::int64_t channels = filter_size(what, filter, 3, site);
  if (size >= std::int64_t{1} << 31 || (size - 1) * step >= std::int64_t{1} << 31)
    refuse_convolution("conv3d: the dilated filter must be below 2^31", site);
  if (x.shape().known(4) &&
      (x.shape()[4] % options.groups != 0 || x.shape()[4] / options.groups != channels))
    refuse_convolution("conv3d: x " + x.shape().text() + " has other channels than the filter " +
                           filter.shape().text() + " in " + std::to_string(options.groups) +
                           " groups",
                       site);
  if (!x.shape().known(4))
    refuse_convolution("conv3d: the channels of x must be known, not " + x.shape().text(), site);
  const std::int64_t reach = (size - 1) * step + 1;
  const auto [before, after] = depth_padding(x, reach, options, site);
  if (before != 0 || after != 0) x = pad(x, {0, 0, before, after, 0, 0, 0, 0, 0, 0}, {}, site);
  if (x.shape().known(1) && x.shape()[1] < reach)
    refuse_convolution("conv3d: a filter over " + std::to_string(reach) +
                           " planes does not fit into " + std::to_string(x.shape()[1]),
                       site);
  std::vector<Output> planes;
  for (std::int64_t tap = 0; tap < size; ++tap) {
    const std::int64_t first = tap * step, missing = reach - 1 - first;
    if (size == 1 && stride == 1)
      planes.push_back(x);
    else
      planes.push_back(x[{whole, range(first, missing == 0 ? std::nullopt : std::optional(-missing),
                                       stride, site)}]);
  }
  const Output joined = join_channels(planes, options.groups, site);
  const Output batch = detail::extent(joined, 0, site), depth = detail::extent(joined, 1, site);
  const Output flat =
      reshape(joined,
              pack({mul(batch, depth, site), detail::extent(joined, 2, site),
                    detail::extent(joined, 3, site), number(g, joined.shape()[4], site)},
                   {}, site),
              site);
  const Output beside = transpose(filter, {.perm = {1, 2, 0, 3, 4}}, site);
  const Output weights =
      reshape(beside,
              pack({detail::extent(filter, 1, site), detail::extent(filter, 2, site),
                    number(g, size * channels, site), detail::extent(filter, 4, site)},
                   {}, site),
              site);
  const Sizes& pads = options.explicit_paddings;
  const Output y = conv2d(
      flat, weights,
      {.strides = {options.strides[1], options.strides[2]},
       .padding = options.padding,
       .explicit_paddings = pads.empty() ? Sizes{} : Sizes{pads[2], pads[3], pads[4], pads[5]},
       .dilations = {options.dilations[1], options.dilations[2]},
       .groups = options.groups},
      site);
  return reshape(y,
                 pack({batch, depth, detail::extent(y, 1, site), detail::extent(y, 2, site),
                       detail::extent(y, 3, site)},
                      {}, site),
                 site);
}

namespace {

// The size that a transposed convolution gives along an axis of its windows.
template <class Options>
Output transposed_size(const std::string& what, const Output& x, const Output& filter,
                       const Options& o, int axis, const Site& site) {
  const auto i = std::size_t(axis);
  GraphBuilder& g = x.graph();
  if (!o.output_size.empty()) return number(g, o.output_size[i], site);
  const Output in = detail::extent(x, axis + 1, site);
  const Output steps = mul(in, number(g, o.strides[i], site), site);
  if (o.padding == "SAME") {
    if (o.output_padding[i] != 0)
      refuse_convolution(what + ": SAME has no output_padding; give output_size", site);
    return steps;
  }
  const std::int64_t size = filter_size(what, filter, axis, site);
  if (size >= std::int64_t{1} << 31)
    refuse_convolution(what + ": the filter must be below 2^31", site);
  std::int64_t more = (size - 1) * o.dilations[i] + 1 - o.strides[i] + o.output_padding[i];
  if (o.padding == "EXPLICIT") more -= o.explicit_paddings[2 * i] + o.explicit_paddings[2 * i + 1];
  return add(steps, number(g, more, site), site);
}

// The options that transposed convolutions of `axes` axes share. Returns how many channels a group
// of their outputs has in all, by dimension `channels` of the filter.
template <class Options>
std::int64_t check_transposed(const std::string& what, const Output& filter, const Options& o,
                              std::size_t axes, int channels, const Site& site) {
  check_padding(what, o.padding, o.explicit_paddings, 2 * axes, site);
  check_numbers(what + ": strides", o.strides, axes, 1, site);
  check_numbers(what + ": dilations", o.dilations, axes, 1, site);
  check_numbers(what + ": groups", {o.groups}, 1, 1, site);
  check_numbers(what + ": output_padding", o.output_padding, axes, 0, site);
  if (!o.output_size.empty()) check_numbers(what + ": output_size", o.output_size, axes, 1, site);
  for (std::size_t i = 0; i < axes; ++i)
    if (o.output_padding[i] >= o.strides[i] && o.output_padding[i] != 0)
      refuse_convolution(what + ": output_padding must be below the stride, not " +
                             std::to_string(o.output_padding[i]),
                         site);
  std::int64_t all = 0;
  if (__builtin_mul_overflow(filter_size(what, filter, channels, site), o.groups, &all))
    refuse_convolution(what + ": too many channels", site);
  return all;
}

}  // namespace

Output conv2d_transpose(Output x, Output filter, const ConvTranspose2dOptions& options, Site site) {
  const std::string what = "conv2d_transpose";
  detail::check_rank(what + ": x", x, 4, "[n,h,w,c]", site);
  detail::check_rank(what + ": filter", filter, 4, "[h,w,k,c]", site);
  const std::int64_t channels = check_transposed(what, filter, options, 2, 2, site);
  const Output sizes =
      pack({detail::extent(x, 0, site), transposed_size(what, x, filter, options, 0, site),
            transposed_size(what, x, filter, options, 1, site), number(x.graph(), channels, site)},
           {}, site);
  return conv2d_backprop_input(sizes, filter, x,
                               {.strides = options.strides,
                                .padding = options.padding,
                                .explicit_paddings = options.explicit_paddings,
                                .dilations = options.dilations,
                                .groups = options.groups},
                               site);
}

Output conv3d_transpose(Output x, Output filter, const ConvTranspose3dOptions& options, Site site) {
  const std::string what = "conv3d_transpose";
  detail::check_rank(what + ": x", x, 5, "[n,d,h,w,c]", site);
  detail::check_rank(what + ": filter", filter, 5, "[d,h,w,k,c]", site);
  const std::int64_t channels = check_transposed(what, filter, options, 3, 3, site);
  std::vector<Output> sizes{detail::extent(x, 0, site)};
  for (int axis = 0; axis < 3; ++axis)
    sizes.push_back(transposed_size(what, x, filter, options, axis, site));
  sizes.push_back(number(x.graph(), channels, site));
  // A convolution is linear in its input, so its gradient is the same for any. Of this one only the
  // shape is used.
  const Output input =
      fill(pack(sizes, {}, site), number_beside(x, 0, what + ": `x`", site).beside(x, site), site);
  const Output forward = conv3d(input, filter,
                                {.strides = options.strides,
                                 .padding = options.padding,
                                 .explicit_paddings = options.explicit_paddings,
                                 .dilations = options.dilations,
                                 .groups = options.groups},
                                site);
  if (!PartialShape::merge(forward.shape(), x.shape()).ok())
    refuse_convolution(what + ": a convolution of " + input.shape().text() + " gives " +
                           forward.shape().text() + ", not x " + x.shape().text(),
                       site);
  auto here = x.graph().with_site(site);
  const auto found =
      troupe::gradients(std::span(&forward, 1), std::span(&input, 1), std::span(&x, 1));
  if (!found.ok()) throw Error(found.status().at(site));
  return (*found)[0];
}

Output depthwise_conv2d(Output x, Output filter, const DepthwiseConv2dOptions& options, Site site) {
  const std::string what = "depthwise_conv2d";
  detail::check_rank(what + ": x", x, 4, "[n,h,w,c]", site);
  detail::check_rank(what + ": filter", filter, 4, "[h,w,c,m]", site);
  GraphBuilder& g = x.graph();
  const std::int64_t channels = filter_size(what, filter, 2, site),
                     filters = filter_size(what, filter, 3, site);
  std::int64_t all = 0;
  if (__builtin_mul_overflow(channels, filters, &all))
    refuse_convolution(what + ": too many channels", site);
  const Output sizes = pack({detail::extent(filter, 0, site), detail::extent(filter, 1, site),
                             number(g, 1, site), number(g, all, site)},
                            {}, site);
  return conv2d(x, reshape(filter, sizes, site),
                {.strides = options.strides,
                 .padding = options.padding,
                 .explicit_paddings = options.explicit_paddings,
                 .dilations = options.dilations,
                 .groups = channels},
                site);
}

}  // namespace troupe
