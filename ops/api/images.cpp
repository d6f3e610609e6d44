#include "ops/api/images.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"
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

namespace {

// One axis of the boxes: for each box and each of the pixels that it becomes, [k, count].
struct Places {
  Output low, high;  // the two pixels around it, i64
  Output part;       // how far it lies behind the lower one
  Output inside;     // bool
};

Places places_along(Output x, Output boxes, int axis, std::int64_t count, const Site& site) {
  GraphBuilder& g = x.graph();
  const DType dtype = x.dtype();
  const auto side = [&](std::int64_t column) {
    return slice(boxes, {0, column}, {-1, 1}, site);  // [k, 1]
  };
  std::vector<double> steps;
  for (std::int64_t i = 0; i < count; ++i)
    steps.push_back(count == 1 ? 0.5 : double(i) / double(count - 1));
  const Output along = cast(constant(g, steps, site), dtype, site);
  const Output begin = side(axis), end = side(axis + 2);
  const Output zero = constant<std::int64_t>(g, 0, site);
  const Output last =
      sub(detail::extent(x, axis + 1, site), constant<std::int64_t>(g, 1, site), site);
  const Output size = cast(last, dtype, site);
  const Output at = mul(add(begin, mul(sub(end, begin, site), along, site), site), size, site);
  const Output below = floor(at, site);
  const Output inside = logical_and(greater_equal(at, cast(zero, dtype, site), site),
                                    less_equal(at, size, site), site);
  // Of a place outside any pixel will do: neither its value nor its gradient is used.
  const Output low = cast(select(inside, below, cast(zero, dtype, site), site), DType::i64, site);
  const Output high = minimum(add(low, constant<std::int64_t>(g, 1, site), site), last, site);
  return {low, high, sub(at, below, site), inside};
}

}  // namespace

Output crop_and_resize(Output x, Output boxes, Output indices, std::int64_t height,
                       std::int64_t width, const CropAndResizeOptions& options, Site site) {
  detail::check_rank("crop_and_resize: x", x, 4, "[n,h,w,c]", site);
  detail::check_rank("crop_and_resize: boxes", boxes, 2, "[k,4]", site);
  detail::check_rank("crop_and_resize: indices", indices, 1, "[k]", site);
  if (height < 1 || width < 1 || height > 1 << 20 || width > 1 << 20)
    throw Error(invalid_argument("crop_and_resize: height and width must be in [1, 2^20], not " +
                                 std::to_string(height) + " and " + std::to_string(width))
                    .at(site));
  if ((x.dtype() != DType::f32 && x.dtype() != DType::f64) || boxes.dtype() != x.dtype())
    throw Error(invalid_argument("crop_and_resize: x and boxes are f32 or f64, the same, not " +
                                 std::string(dtype_name(x.dtype())) + " and " +
                                 std::string(dtype_name(boxes.dtype())))
                    .at(site));
  if (!PartialShape::merge(boxes.shape(), PartialShape{indices.shape()[0], 4}).ok())
    throw Error(invalid_argument("crop_and_resize: boxes are [k,4] beside indices [k], not " +
                                 boxes.shape().text() + " and " + indices.shape().text())
                    .at(site));
  GraphBuilder& g = x.graph();
  // One picture is not that of all boxes, even where only a run knows how many there are.
  if (!indices.shape().fully_known() || !boxes.shape().known(0)) {
    const Output each = squeeze(slice(boxes, {0, 0}, {-1, 1}, site), {.axes = {1}}, site);
    indices = ensure_same_shape(indices, each, site);
  }
  const Places rows = places_along(x, boxes, 0, height, site),
               columns = places_along(x, boxes, 1, width, site);
  const auto down = [&](Output of_rows) { return expand_dims(of_rows, 2, site); };  // [k,h,1]
  const auto across = [&](Output of_columns) {
    return expand_dims(of_columns, 1, site);
  };  // [k,1,w]
  // Zeros [k,h,w], which make the indices of all pixels as large.
  const Output none =
      mul(add(down(rows.low), across(columns.low), site), constant<std::int64_t>(g, 0, site), site);
  const Output picture =
      add(reshape(cast(indices, DType::i64, site), {-1, 1, 1}, site), none, site);
  const auto corner = [&](Output row, Output column) {
    return gather_nd(x,
                     pack({picture, add(down(row), none, site), add(across(column), none, site)},
                          {.axis = -1}, site),
                     site);
  };
  const auto between = [&](Output from, Output to, Output part) {
    return add(from, mul(sub(to, from, site), part, site), site);
  };
  const Output right = expand_dims(across(columns.part), 3, site);
  const Output top = between(corner(rows.low, columns.low), corner(rows.low, columns.high), right);
  const Output bottom =
      between(corner(rows.high, columns.low), corner(rows.high, columns.high), right);
  const Output y = between(top, bottom, expand_dims(down(rows.part), 3, site));
  const Output inside =
      expand_dims(logical_and(down(rows.inside), across(columns.inside), site), 3, site);
  return select(inside, y, Operand(options.outside, site).beside(x), site);
}

}  // namespace troupe
