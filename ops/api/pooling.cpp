#include "ops/api/pooling.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/extent.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

namespace {

using Sizes = std::vector<std::int64_t>;

// A pool over height and width, of windows [h,w].
using Planes = Output (*)(const Output& x, const Sizes& size, const Sizes& strides,
                          const std::string& padding, const Site& site);

Output largest(const Output& x, const Sizes& size, const Sizes& strides, const std::string& padding,
               const Site& site) {
  return max_pool(x, size, strides, {.padding = padding}, site);
}
Output means(const Output& x, const Sizes& size, const Sizes& strides, const std::string& padding,
             const Site& site) {
  return avg_pool(x, size, strides, {.padding = padding}, site);
}

Output over_steps(Planes pool, const std::string& what, const Output& x, std::int64_t size,
                  const Pool1dOptions& o, const Site& site) {
  detail::check_rank(what + ": x", x, 3, "[n,w,c]", site);
  const Output y = pool(expand_dims(x, 1, site), {1, size}, {1, o.stride == 0 ? size : o.stride},
                        o.padding, site);
  return squeeze(y, {.axes = {1}}, site);
}

// Over height and width of all planes, then over the depth of what that gives, with height and
// width as one: a maximum of maxima. Means have one count in all planes, so that theirs is the
// mean.
Output over_volumes(Planes pool, const std::string& what, const Output& x, const Sizes& size,
                    const Pool3dOptions& o, const Site& site) {
  detail::check_rank(what + ": x", x, 5, "[n,d,h,w,c]", site);
  const Sizes& strides = o.strides.empty() ? size : o.strides;
  if (size.size() != 3 || strides.size() != 3)
    throw Error(invalid_argument(what + ": size and strides are those of depth, height and width")
                    .at(site));
  const auto dims = [&](const std::vector<Output>& each) { return pack(each, {}, site); };
  const auto of = [&](const Output& y, int axis) { return detail::extent(y, axis, site); };
  const Output planes =
      pool(reshape(x, dims({mul(of(x, 0), of(x, 1), site), of(x, 2), of(x, 3), of(x, 4)}), site),
           {size[1], size[2]}, {strides[1], strides[2]}, o.padding, site);
  const Output columns = mul(of(planes, 1), of(planes, 2), site);
  const Output y = pool(reshape(planes, dims({of(x, 0), of(x, 1), columns, of(x, 4)}), site),
                        {size[0], 1}, {strides[0], 1}, o.padding, site);
  return reshape(y, dims({of(x, 0), of(y, 1), of(planes, 1), of(planes, 2), of(x, 4)}), site);
}

}  // namespace

Output max_pool1d(Output x, std::int64_t size, const Pool1dOptions& options, Site site) {
  return over_steps(largest, "max_pool1d", x, size, options, site);
}
Output avg_pool1d(Output x, std::int64_t size, const Pool1dOptions& options, Site site) {
  return over_steps(means, "avg_pool1d", x, size, options, site);
}

Output max_pool3d(Output x, const Sizes& size, const Pool3dOptions& options, Site site) {
  return over_volumes(largest, "max_pool3d", x, size, options, site);
}
Output avg_pool3d(Output x, const Sizes& size, const Pool3dOptions& options, Site site) {
  check_given("avg_pool3d: x", x, site);
  const DType dtype = x.dtype();
  const Output y = over_volumes(means, "avg_pool3d", detail::wide(x, site), size, options, site);
  return detail::narrow(y, dtype, site);
}

}  // namespace troupe
