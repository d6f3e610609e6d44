// libpng, for images of summaries.
#include <fmt/core.h>
#include <png.h>

#include <cstring>

#include "ops/detail/summary_bytes.hpp"

namespace troupe::detail {

Expected<std::string> encode_png(std::span<const std::uint8_t> pixels, std::int64_t height,
                                 std::int64_t width, std::int64_t channels) {
  constexpr std::int64_t kMostSide = 1'000'000;  // libpng's own limit
  constexpr std::int64_t kMostPixelBytes = std::int64_t{1} << 30;
  if (height < 1 || width < 1 || height > kMostSide || width > kMostSide)
    return invalid_argument(fmt::format("an image has from 1 to {} pixels on a side, not {} x {}",
                                        kMostSide, height, width));
  if (height * width > kMostPixelBytes / channels)
    return invalid_argument(
        fmt::format("an image of {} x {} x {} is more than a summary takes: {} bytes", height,
                    width, channels, kMostPixelBytes));
  TROUPE_CHECK(std::int64_t(pixels.size()) == height * width * channels, "one byte per channel");
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(width);
  image.height = png_uint_32(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  std::string out(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = out.size();
  const int written =
      png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr);
  if (written == 0) {
    const std::string why = image.message;
    png_image_free(&image);
    return resource_exhausted("cannot encode the image as PNG: " + why);
  }
  out.resize(size);
  return out;
}

}  // namespace troupe::detail
