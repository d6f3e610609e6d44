#include "ops/data/images/picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "ops/data/images/resize_picture.hpp"
#include "ops/data/sources/pixels.hpp"

namespace troupe {

namespace {

// A picture is resized to no more than this, and none larger is decoded.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 30;

std::uint8_t grey_of(const std::uint8_t* pixel) {
  // In 65536ths, rounded; the weights are one together.
  return std::uint8_t((19595u * pixel[0] + 38470u * pixel[1] + 7471u * pixel[2] + 32768u) >> 16);
}

std::uint8_t to_byte(float value) {
  return std::uint8_t(std::clamp(std::floor(value + 0.5f), 0.0f, 255.0f));
}

// The picture at its size, in the options' channels, as bytes or floats.
void put_pixels(const DecodedImage& picture, const data::ImageOptions& options, std::int64_t height,
                std::int64_t width, void* pixels) {
  const bool floats = options.dtype == DType::f32;
  const PictureArea area = area_for(picture, height, width, options.fit);
  if (picture.height == height && picture.width == width) {
    if (floats)
      to_floats({reinterpret_cast<const char*>(picture.pixels.data()), picture.pixels.size()},
                static_cast<float*>(pixels));
    else
      std::memcpy(pixels, picture.pixels.data(), picture.pixels.size());
    return;
  }
  const std::vector<float> resized = resize_picture(picture, area, height, width);
  if (floats) {
    float* const to = static_cast<float*>(pixels);
    for (std::size_t i = 0; i < resized.size(); ++i)
      to[i] = std::clamp(resized[i] * (1.0f / 255), 0.0f, 1.0f);
  } else {
    std::uint8_t* const to = static_cast<std::uint8_t*>(pixels);
    for (std::size_t i = 0; i < resized.size(); ++i) to[i] = to_byte(resized[i]);
  }
}

// Memory in `picture`, which gets the size.
auto allocate_in(DecodedImage& picture) {
  return [&picture](std::int64_t height, std::int64_t width,
                    std::int64_t channels) -> Expected<std::uint8_t*> {
    picture = {height, width, channels, {}};
    picture.pixels.resize(std::size_t(height * width * channels));
    return picture.pixels.data();
  };
}

// Bytes at the picture's own size. If the channels are the wanted ones, they are decoded where the
// tensor has them.
Expected<Tensor> decode_as_it_is(std::string_view content, const data::ImageOptions& options) {
  std::optional<Tensor> pixels;
  DecodedImage picture;
  const auto make = [&](std::int64_t height, std::int64_t width) -> Expected<std::uint8_t*> {
    TROUPE_TRY(pixels, Tensor::make(DType::u8, Shape{height, width, options.channels}));
    return pixels->mutable_data<std::uint8_t>();
  };
  TROUPE_TRY(decode_picture(content, options.most_pixels,
                            [&](std::int64_t height, std::int64_t width, std::int64_t channels) {
                              return channels == options.channels
                                         ? make(height, width)
                                         : allocate_in(picture)(height, width, channels);
                            }));
  if (pixels) return std::move(*pixels);
  picture = with_channels(std::move(picture), options.channels);
  TROUPE_TRY(std::uint8_t * to, make(picture.height, picture.width));
  std::memcpy(to, picture.pixels.data(), picture.pixels.size());
  return std::move(*pixels);
}

Expected<DecodedImage> decoded(std::string_view content, const data::ImageOptions& options) {
  TROUPE_TRY(DecodedImage picture, decode_picture(content, options.most_pixels));
  return with_channels(std::move(picture), options.channels);
}

}  // namespace

Status check_pixels(std::uint64_t height, std::uint64_t width, std::int64_t most_pixels) {
  if (height == 0 || width == 0) return data_loss("a picture without pixels");
  if (height <= std::uint64_t(most_pixels) / width) return ok_status();
  return data_loss("a picture of " + std::to_string(height) + " x " + std::to_string(width) +
                   " pixels, and no more than " + std::to_string(most_pixels) + " are allowed");
}

Status decode_picture(std::string_view content, std::int64_t most_pixels, PixelMemory memory) {
  if (is_png(content)) return decode_png(content, most_pixels, memory);
  if (is_jpeg(content)) return decode_jpeg(content, most_pixels, memory);
  return data_loss("neither a PNG nor a JPEG file");
}

Expected<DecodedImage> decode_picture(std::string_view content, std::int64_t most_pixels) {
  DecodedImage picture;
  TROUPE_TRY(decode_picture(content, most_pixels, allocate_in(picture)));
  return picture;
}

DecodedImage with_channels(DecodedImage picture, std::int64_t channels) {
  if (picture.channels == channels) return picture;
  const bool grey = picture.channels < 3, opacity = picture.channels % 2 == 0;
  DecodedImage out{picture.height, picture.width, channels, {}};
  out.pixels.resize(std::size_t(picture.height * picture.width * channels));
  const std::uint8_t* from = picture.pixels.data();
  std::uint8_t* to = out.pixels.data();
  for (std::int64_t i = 0; i < picture.height * picture.width; ++i, from += picture.channels) {
    if (channels == 1) {
      *to++ = grey ? from[0] : grey_of(from);
      continue;
    }
    for (int c = 0; c < 3; ++c) *to++ = from[grey ? 0 : c];
    if (channels == 4) *to++ = opacity ? from[picture.channels - 1] : 255;
  }
  return out;
}

PartialShape image_shape(const data::ImageOptions& options) {
  const auto side = [](std::int64_t n) { return n == 0 ? PartialShape::kUnknown : n; };
  return {side(options.height), side(options.width), options.channels};
}

Expected<Tensor> decode_image_tensor(std::string_view content, const data::ImageOptions& options) {
  if (options.height == 0 && options.dtype == DType::u8) return decode_as_it_is(content, options);
  TROUPE_TRY(const DecodedImage picture, decoded(content, options));
  const std::int64_t height = options.height == 0 ? picture.height : options.height,
                     width = options.width == 0 ? picture.width : options.width;
  TROUPE_TRY(Tensor pixels, Tensor::make(options.dtype, Shape{height, width, options.channels}));
  put_pixels(picture, options, height, width, pixels.mutable_raw());
  return pixels;
}

Status decode_image_into(std::string_view content, const data::ImageOptions& options,
                         void* pixels) {
  TROUPE_TRY(const DecodedImage picture, decoded(content, options));
  put_pixels(picture, options, options.height, options.width, pixels);
  return ok_status();
}

std::vector<std::string> image_words(const data::ImageOptions& options) {
  return {std::to_string(options.height),
          std::to_string(options.width),
          std::to_string(options.channels),
          std::string(options.dtype == DType::invalid ? "invalid" : dtype_name(options.dtype)),
          options.fit == data::Fit::crop ? "crop" : "stretch",
          std::to_string(options.most_pixels)};
}

Expected<data::ImageOptions> parse_image_words(const StageText& stage, std::size_t first) {
  data::ImageOptions options;
  TROUPE_TRY(options.height, stage.number(first, 0));
  TROUPE_TRY(options.width, stage.number(first + 1, 0));
  TROUPE_TRY(options.channels, stage.number(first + 2, 1));
  TROUPE_TRY(options.dtype, stage.dtype(first + 3));
  TROUPE_TRY(const std::string fit, stage.word(first + 4));
  TROUPE_TRY(options.most_pixels, stage.number(first + 5, 1));
  options.fit = fit == "crop" ? data::Fit::crop : data::Fit::stretch;
  if (fit != "crop" && fit != "stretch")
    return invalid_argument("stage '" + stage.text() + "' says neither crop nor stretch");
  if ((options.height == 0) != (options.width == 0))
    return invalid_argument("pictures of " + std::to_string(options.height) + " x " +
                            std::to_string(options.width) + " pixels: give both sides, or none");
  if (options.channels != 1 && options.channels != 3 && options.channels != 4)
    return invalid_argument("pictures of " + std::to_string(options.channels) +
                            " channels: there are 1, 3 or 4");
  if (options.dtype != DType::f32 && options.dtype != DType::u8)
    return invalid_argument("pictures of " + std::string(dtype_name(options.dtype)) +
                            ": they are f32 or u8");
  if (options.most_pixels > kMostPixels ||
      (options.height != 0 && options.height > kMostPixels / options.width))
    return invalid_argument("pictures of more than " + std::to_string(kMostPixels) + " pixels");
  return options;
}

}  // namespace troupe
