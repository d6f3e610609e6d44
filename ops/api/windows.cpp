#include "ops/api/windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/extent.hpp"

namespace troupe {

namespace {

[[noreturn]] void refuse_window(std::string what, const Site& site) {
  throw Error(invalid_argument(std::move(what)).at(site));
}

// Windows of `size` places, of which neighbours are `dilation` apart.
struct Windows {
  std::int64_t size, step, dilation = 1;

  void check(const char* op, const Site& site) const {
    for (const std::int64_t number : {size, step, dilation})
      if (number < 1 || number > INT32_MAX)
        refuse_window(fmt::format("{}: {} is no size or step of a window", op, number), site);
  }
  std::int64_t reach() const { return (size - 1) * dilation + 1; }
  // How many of them are in `length` places.
  std::int64_t within(std::int64_t length) const { return (length - reach()) / step + 1; }
};

// In place of dimension `place` of x two: the windows, and the places of each. REQUIRES: the
// dimension is known.
Output windows_along(const char* op, Output x, int place, const Windows& windows,
                     const Site& site) {
  const std::int64_t length = x.shape()[place];
  if (length < windows.reach())
    refuse_window(fmt::format("{}: a window of {} does not fit into dimension {} of {}", op,
                              windows.reach(), place, x.shape().text()),
                  site);
  GraphBuilder& g = x.graph();
  const std::int64_t last = (windows.within(length) - 1) * windows.step;
  const Output begins = range(g, 0, last + 1, windows.step, site);
  const Output inside = range(g, 0, windows.reach(), windows.dilation, site);
  return gather(x, add(expand_dims(begins, 1, site), inside, site), {.axis = place}, site);
}

// What SAME adds before and after `length` places.
std::pair<std::int64_t, std::int64_t> same_border(std::int64_t length, const Windows& windows) {
  const std::int64_t number = (length + windows.step - 1) / windows.step;
  const std::int64_t missing =
      std::max<std::int64_t>((number - 1) * windows.step + windows.reach() - length, 0);
  return {missing / 2, missing - missing / 2};
}

}  // namespace

Output unfold(Output x, std::int64_t axis, std::int64_t size, std::int64_t step, Site site) {
  const int place = detail::place_of(x, axis, "unfold", site);
  detail::known_extent(x, place, "unfold", site);
  const Windows windows{size, step};
  windows.check("unfold", site);
  const Output y = windows_along("unfold", x, place, windows, site);
  std::vector<std::int64_t> perm;
  for (int i = 0; i < y.shape().rank(); ++i)
    if (i != place + 1) perm.push_back(i);
  perm.push_back(place + 1);
  return place + 2 == y.shape().rank() ? y : transpose(y, {.perm = perm}, site);
}

Output extract_patches(Output x, const std::vector<std::int64_t>& size,
                       const PatchesOptions& options, Site site) {
  const char* op = "extract_patches";
  detail::check_rank("extract_patches: x", x, 4, "[n,h,w,c]", site);
  for (int place = 1; place < 4; ++place) detail::known_extent(x, place, op, site);
  if (size.size() != 2 || options.strides.size() != 2 || options.dilations.size() != 2)
    refuse_window("extract_patches: wants a size, a stride and a dilation for height and width",
                  site);
  if (options.padding != "SAME" && options.padding != "VALID")
    refuse_window("extract_patches: padding is \"" + options.padding + "\", not SAME or VALID",
                  site);
  Windows rows{size[0], options.strides[0], options.dilations[0]};
  Windows columns{size[1], options.strides[1], options.dilations[1]};
  rows.check(op, site);
  columns.check(op, site);
  if (options.padding == "SAME")
    x = pad(x,
            {{0, 0}, same_border(x.shape()[1], rows), same_border(x.shape()[2], columns), {0, 0}},
            {}, site);
  const PartialShape shape = x.shape();
  // [n, h', height, w', width, c]
  const Output parts = windows_along(op, windows_along(op, x, 1, rows, site), 3, columns, site);
  std::int64_t depth = 0;
  if (__builtin_mul_overflow(rows.size * columns.size, std::int64_t(shape[3]), &depth))
    refuse_window("extract_patches: the patches are too large", site);
  return reshape(transpose(parts, {.perm = {0, 1, 3, 2, 4, 5}}, site),
                 {shape[0], rows.within(shape[1]), columns.within(shape[2]), depth}, site);
}

Output hann_window(GraphBuilder& g, std::int64_t n, DType dtype, Site site) {
  if (n < 1) refuse_window(fmt::format("hann_window: n is {}", n), site);
  if (!is_float(dtype))
    refuse_window(fmt::format("hann_window: {} is no floating type", dtype_name(dtype)), site);
  Tensor values = value_or_throw(Tensor::make(DType::f64, Shape{n}));
  double* to = values.mutable_data<double>();
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = n == 1 ? 1 : 0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(i) / double(n));
  const Output exact = constant(g, std::move(values), site);
  return dtype == DType::f64 ? exact : cast(exact, dtype, site);
}

Output stft(Output x, std::int64_t frame_length, std::int64_t step, const StftOptions& options,
            Site site) {
  const int place = detail::place_of(x, -1, "stft", site);
  detail::known_extent(x, place, "stft", site);
  const Windows frames{frame_length, step};
  frames.check("stft", site);
  const std::int64_t length = options.fft_length == 0 ? frame_length : options.fft_length;
  if (length < frame_length)
    refuse_window(
        fmt::format("stft: fft_length {} is less than a frame of {}", length, frame_length), site);
  Output window = options.window;
  if (window.empty()) {
    window = hann_window(x.graph(), frame_length, x.dtype(), site);
  } else if (!PartialShape::merge(window.shape(), PartialShape{frame_length}).ok()) {
    refuse_window("stft: the window has shape " + window.shape().text() + ", not [" +
                      std::to_string(frame_length) + "]",
                  site);
  } else if (!window.shape().fully_known()) {
    window = ensure_shape(window, {frame_length}, site);  // or one of length 1 would be stretched
  }
  const Output parts = mul(windows_along("stft", x, place, frames, site), window, site);
  return rfft(parts, {.fft_length = {length}}, site);
}

}  // namespace troupe
