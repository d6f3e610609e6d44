#include "ops/api/images.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/extent.hpp"

namespace troupe {

Output resize(Output x, std::int64_t height, std::int64_t width, const ResizeOptions& options,
              Site site) {
  check_given("resize: x", x, site);
  const Output size = constant(x.graph(), std::vector<std::int64_t>{height, width}, site);
  return resize(x, size, options, site);
}

Output crop(Output x, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width,
            Site site) {
  detail::check_rank("crop: x", x, 4, "[n,h,w,c]", site);
  if (height < 0 || width < 0)
    throw Error(invalid_argument("crop: " + std::to_string(height) + " rows and " +
                                 std::to_string(width) + " columns; neither may be negative")
                    .at(site));
  return slice(x, {0, top, left, 0}, {-1, height, width, -1}, site);
}

Output center_crop(Output x, std::int64_t height, std::int64_t width, Site site) {
  detail::check_rank("center_crop: x", x, 4, "[n,h,w,c]", site);
  const PartialShape& s = x.shape();
  if (!s.known(1) || !s.known(2) || height < 0 || width < 0 || s[1] < height || s[2] < width)
    throw Error(invalid_argument("center_crop: " + std::to_string(height) + " x " +
                                 std::to_string(width) + " pixels of pictures " + s.text() +
                                 ", whose height and width must be known and as large")
                    .at(site));
  return crop(x, (s[1] - height) / 2, (s[2] - width) / 2, height, width, site);
}

}  // namespace troupe
