// Pictures as they are decoded, and what components are made of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"
#include "ops/data/decoding.hpp"
#include "ops/data/stage_text.hpp"

namespace troupe {

// Rows of pixels of 1 (grey), 2 (grey and opacity), 3 (red, green, blue) or 4 bytes.
struct DecodedImage {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;
};

// The picture in a PNG or JPEG file, as its first bytes say. data_loss for content that is neither,
// is damaged, ends early, or says that it has more than `most_pixels`: then before memory is taken
// for it.
Expected<DecodedImage> decode_picture(std::string_view content, std::int64_t most_pixels);
bool is_png(std::string_view content);
bool is_jpeg(std::string_view content);
// Of content that is such a file.
Expected<DecodedImage> decode_png(std::string_view content, std::int64_t most_pixels);
Expected<DecodedImage> decode_jpeg(std::string_view content, std::int64_t most_pixels);

// data_loss for no pixels, or more than allowed.
Status check_pixels(std::uint64_t height, std::uint64_t width, std::int64_t most_pixels);

// The same picture in another number of channels: 1, 3 or 4. Grey is 0.299 red + 0.587 green +
// 0.114 blue; opacity is dropped, or full.
DecodedImage with_channels(DecodedImage picture, std::int64_t channels);

// The shape of components, of which height and width are unknown where the options leave them to
// the picture.
PartialShape image_shape(const data::ImageOptions& options);
// Decodes, resizes and converts; what is told of a picture is data_loss.
Expected<Tensor> decode_image_tensor(std::string_view content, const data::ImageOptions& options);
// The same into `pixels`, height * width * channels elements of the options' dtype.
// REQUIRES: a size.
Status decode_image_into(std::string_view content, const data::ImageOptions& options, void* pixels);

// The options as words of a stage, and back; invalid_argument for options that are none.
inline constexpr std::size_t kImageWords = 6;
std::vector<std::string> image_words(const data::ImageOptions& options);
Expected<data::ImageOptions> parse_image_words(const StageText& stage, std::size_t first);

}  // namespace troupe
