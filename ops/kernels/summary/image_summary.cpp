// ImageSummary: pictures (paper, section 9.1).
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/kernels/summary/summary.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status check_image_channels(const std::string& shape, std::int64_t channels) {
  if (channels == 1 || channels == 3 || channels == 4) return ok_status();
  return invalid_argument(
      fmt::format("x is [batch,height,width,channels] with 1, 3 or 4 channels, not {}", shape));
}

Status image_summary_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 4));
  TROUPE_TRY(check_max_outputs(c));
  const auto& bad = c.ints_attr("bad_color");
  if (bad.size() != 4 ||
      std::any_of(bad.begin(), bad.end(), [](std::int64_t v) { return v < 0 || v > 255; }))
    return invalid_argument("bad_color has 4 numbers from 0 to 255");
  if (c.shape(0).known_rank() && c.shape(0).known(3))
    TROUPE_TRY(check_image_channels(c.shape(0).text(), c.shape(0).dim(3).value()));
  return tagged_summary_shape(c);
}

template <class T>
struct ImageSummary final : Kernel {
  using F = Compute<T>;

  explicit ImageSummary(const KernelSpec& s)
      : tag(s.string_attr("tag")), most(s.int_attr("max_outputs")) {
    for (const std::int64_t v : s.ints_attr("bad_color")) bad_color.push_back(std::uint8_t(v));
  }

  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 4) return invalid_argument("x must have rank 4, not " + x.shape().text());
    const std::int64_t height = x.shape()[1], width = x.shape()[2], channels = x.shape()[3];
    TROUPE_TRY(check_image_channels(x.shape().text(), channels));
    const std::int64_t size = x.shape().elements(1, 4);
    detail::SummaryBytes summary;
    std::vector<std::uint8_t> pixels;
    for (std::int64_t i = 0; i < std::min(most, x.shape()[0]); ++i) {
      const std::span<const T> image(x.data<T>() + i * size, std::size_t(size));
      std::span<const std::uint8_t> bytes;
      if constexpr (std::is_same_v<T, std::uint8_t>) {
        bytes = image;
      } else {
        scale_image(image, std::size_t(channels), pixels);
        bytes = pixels;
      }
      TROUPE_TRY(const std::string png, detail::encode_png(bytes, height, width, channels));
      summary.add_image(detail::numbered_tag(tag, "image", i, most), height, width, channels, png);
    }
    return set_summary(ctx, std::move(summary));
  }

  // As TensorFlow scales: positive images from [0, max] to [0, 255], others from [-m, m] to
  // [1, 255], with 0 at 128. Pixels that are not finite have no say, and become bad_color.
  void scale_image(std::span<const T> image, std::size_t channels,
                   std::vector<std::uint8_t>& pixels) const {
    constexpr F kSmall = F(1e-6);
    const auto finite = [&](std::size_t at) {
      for (std::size_t c = at; c < at + channels; ++c)
        if (!std::isfinite(F(image[c]))) return false;
      return true;
    };
    F low = std::numeric_limits<F>::infinity(), high = -low;
    for (std::size_t at = 0; at < image.size(); at += channels) {
      if (!finite(at)) continue;
      for (std::size_t c = at; c < at + channels; ++c) {
        low = std::min(low, F(image[c]));
        high = std::max(high, F(image[c]));
      }
    }
    const bool both = low < 0;
    const F most_value = both ? std::max(std::abs(low), std::abs(high)) : high;
    const F scale = most_value < kSmall ? F(0) : F(both ? 127 : 255) / most_value;
    const F offset = both ? F(128) : F(0);
    pixels.resize(image.size());
    for (std::size_t at = 0; at < image.size(); at += channels) {
      const bool good = finite(at);
      for (std::size_t c = 0; c < channels; ++c)
        pixels[at + c] =
            good ? std::uint8_t(std::clamp(F(image[at + c]) * scale + offset, F(0), F(255)))
                 : bad_color[c];
    }
  }

  std::string tag;
  std::int64_t most;
  std::vector<std::uint8_t> bad_color;
};

}  // namespace

TROUPE_OPS(image_summary) {
  r.add({.name = "ImageSummary",
         .in = {"x"},
         .out = {"summary: string"},
         .types = "u8 f32 f64 f16 bf16",
         .attrs = {"tag: string", "max_outputs: int = 3", "bad_color: list(int) = [255,0,0,255]"},
         .shape = image_summary_shape,
         .no_gradient = kNoSummaryGradient,
         .doc = "A serialized Summary protocol buffer with the first `max_outputs` images of x, "
                "[batch,height,width,channels], as PNG: gray, RGB or RGBA. The tags are "
                "tag/image/0, tag/image/1..., or tag/image if max_outputs is 1. u8 values are used "
                "unchanged. Floats are scaled for each image: from [0,max] to [0,255], or, if any "
                "is negative, so that 0 becomes 128 and the largest absolute value 255 or 1. "
                "Pixels with a NaN or an infinity get `bad_color`."})
      .cpu(typed_kernel<ImageSummary, Types<std::uint8_t, float, double, half, bfloat16>>);
}
