// Windows that slide over height and width: attributes of convolutions and pools, checked, and the
// sizes that follow from them. Every number that comes from outside is bounded here, so that no
// later product of two of them overflows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/kernels/support/through_float.hpp"
#include "ops/op.hpp"

namespace troupe {

struct WindowAttrs {
  enum class Padding : std::uint8_t { same, valid, explicit_ };
  std::array<std::int64_t, 2> stride{1, 1}, dilation{1, 1};  // height, width
  std::array<std::int64_t, 2> size{0, 0};                    // pools only
  Padding padding = Padding::same;
  std::array<std::int64_t, 4> pads{};  // explicit: top, bottom, left, right; else 0
  std::int64_t groups = 1;             // convolutions only
};

// One axis of one window over one input.
struct WindowAxis {
  std::int64_t in = 0, size = 0, stride = 1, dilation = 1;
  std::int64_t out = 0, pad_before = 0, pad_after = 0;
};

inline constexpr std::int64_t kWindowLimit = std::int64_t{1} << 31;

// [h, w] or [1, h, w, 1], each in [1, 2^31).
inline Expected<std::array<std::int64_t, 2>> window_pair(const std::vector<std::int64_t>& values,
                                                         std::string_view name) {
  std::array<std::int64_t, 2> pair{};
  if (values.size() == 2)
    pair = {values[0], values[1]};
  else if (values.size() == 4 && values[0] == 1 && values[3] == 1)
    pair = {values[1], values[2]};
  else
    return invalid_argument(std::string(name) + " must be [h, w] or [1, h, w, 1]");
  for (std::int64_t v : pair)
    if (v < 1 || v >= kWindowLimit)
      return invalid_argument(std::string(name) + " must be positive and below 2^31, not " +
                              std::to_string(v));
  return pair;
}

// [top, bottom, left, right], or the same between two zeros on either side.
inline Expected<std::array<std::int64_t, 4>> window_pads(std::vector<std::int64_t> values) {
  if (values.size() == 8 && values[0] == 0 && values[1] == 0 && values[6] == 0 && values[7] == 0)
    values = {values[2], values[3], values[4], values[5]};
  if (values.size() != 4)
    return invalid_argument("explicit_paddings must be [top, bottom, left, right]");
  for (std::int64_t v : values)
    if (v < 0 || v >= kWindowLimit)
      return invalid_argument("explicit_paddings must be in [0, 2^31), not " + std::to_string(v));
  return std::array{values[0], values[1], values[2], values[3]};
}

// From a KernelSpec, an InferenceContext or a GradContext.
template <class Attrs>
Expected<WindowAttrs> read_window(const Attrs& a, bool pool) {
  WindowAttrs w;
  TROUPE_TRY(w.stride, window_pair(a.ints_attr("strides"), "strides"));
  const std::string& padding = a.string_attr("padding");
  w.padding = padding == "SAME"    ? WindowAttrs::Padding::same
              : padding == "VALID" ? WindowAttrs::Padding::valid
                                   : WindowAttrs::Padding::explicit_;
  if (w.padding == WindowAttrs::Padding::explicit_) {
    TROUPE_TRY(w.pads, window_pads(a.ints_attr("explicit_paddings")));
  } else if (!a.ints_attr("explicit_paddings").empty()) {
    return invalid_argument("explicit_paddings are for padding EXPLICIT, and it is " + padding);
  }
  if (pool) {
    TROUPE_TRY(w.size, window_pair(a.ints_attr("ksize"), "ksize"));
    for (std::size_t i = 0; i < w.pads.size(); ++i)  // else a window may have no element
      if (w.pads[i] >= w.size[i / 2])
        return invalid_argument("a padding of " + std::to_string(w.pads[i]) +
                                " must be smaller than the window of " +
                                std::to_string(w.size[i / 2]));
    return w;
  }
  TROUPE_TRY(w.dilation, window_pair(a.ints_attr("dilations"), "dilations"));
  w.groups = a.int_attr("groups");
  if (w.groups < 1 || w.groups >= kWindowLimit)
    return invalid_argument("groups must be positive and below 2^31, not " +
                            std::to_string(w.groups));
  return w;
}

// Axis 0 is height, 1 width; `size` is that of the filter, or of the pool's window.
inline Expected<WindowAxis> window_axis(const WindowAttrs& w, int axis, std::int64_t in,
                                        std::int64_t size) {
  const auto i = std::size_t(axis);
  WindowAxis a{in, size, w.stride[i], w.dilation[i]};
  if (in >= kWindowLimit || size >= kWindowLimit || size < 1)
    return invalid_argument("a window of " + std::to_string(size) + " over " + std::to_string(in) +
                            " elements: both must be below 2^31, the window not empty");
  const std::int64_t reach = (size - 1) * a.dilation + 1;  // below 2^62
  if (reach >= kWindowLimit) return invalid_argument("the dilated window must be below 2^31");
  if (w.padding == WindowAttrs::Padding::same) {
    a.out = (in + a.stride - 1) / a.stride;
    const std::int64_t total = std::max<std::int64_t>(0, (a.out - 1) * a.stride + reach - in);
    a.pad_before = total / 2;
    a.pad_after = total - a.pad_before;
    return a;
  }
  if (w.padding == WindowAttrs::Padding::explicit_) {
    if (in == 0 && w.size[i] != 0)
      return invalid_argument("a pool has no elements but padding: x is empty there");
    a.pad_before = w.pads[2 * i];
    a.pad_after = w.pads[2 * i + 1];
  }
  const std::int64_t room = in + a.pad_before + a.pad_after - reach;
  if (room < 0)
    return invalid_argument("a window of " + std::to_string(reach) + " does not fit into " +
                            std::to_string(in) + " elements and their padding");
  a.out = room / a.stride + 1;
  return a;
}

// The output size for shape functions: unknown where the input is.
inline Expected<std::int64_t> window_out(const WindowAttrs& w, int axis, std::int64_t in,
                                         std::int64_t size) {
  if (in == PartialShape::kUnknown || size == PartialShape::kUnknown) return PartialShape::kUnknown;
  TROUPE_TRY(WindowAxis a, window_axis(w, axis, in, size));
  return a.out;
}

// The sizes operand of a gradient: where the graph knew no shape, it is read at run time.
inline Expected<Shape> shape_operand(const Tensor& sizes) {
  if (sizes.rank() != 1) return invalid_argument("sizes must be a vector");
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < sizes.elements(); ++i)
    dims.push_back(sizes.dtype() == DType::i32 ? sizes.data<std::int32_t>()[i]
                                               : sizes.data<std::int64_t>()[i]);
  return Shape::make(dims);
}

// A factory for kernels made of their window: .cpu(window_kernel<true, MaxPool>). Those of f16 and
// bf16 are made of the kernel of f32.
template <bool kPool, template <class> class K>
Expected<std::unique_ptr<Kernel>> window_kernel(const KernelSpec& spec) {
  TROUPE_TRY(WindowAttrs window, read_window(spec, kPool));
  return through_float_kernel<K>(spec.type(), window);
}

}  // namespace troupe
