// Decoding of PNG and JPEG pictures to components.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.hpp"
#include "core/tensor.hpp"
#include "ops/data/decoding.hpp"
#include "ops/data/stage_text.hpp"

namespace troupe {

// Rows of pixels of 1 (grey), 2 (grey and opacity), 3 (red, green, blue) or 4 bytes.
struct DecodedImage {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;
};

// Decodes a PNG or JPEG file; its first bytes decide which. data_loss for other, damaged or
// truncated content, and for more than `most_pixels`, before memory is allocated for them.
Expected<DecodedImage> decode_picture(std::string_view content, std::int64_t most_pixels);
// The same into memory for height * width * channels components, which `memory` provides when these
// are known.
using PixelMemory = FunctionRef<Expected<std::uint8_t*>(std::int64_t height, std::int64_t width,
                                                        std::int64_t channels)>;
Status decode_picture(std::string_view content, std::int64_t most_pixels, PixelMemory memory);
bool is_png(std::string_view content);
bool is_jpeg(std::string_view content);
// For content of the respective format.
Status decode_png(std::string_view content, std::int64_t most_pixels, PixelMemory memory);
Status decode_jpeg(std::string_view content, std::int64_t most_pixels, PixelMemory memory);

// data_loss for a picture without pixels, or with more than allowed.
Status check_pixels(std::uint64_t height, std::uint64_t width, std::int64_t most_pixels);

// The same picture with another number of channels: 1, 3 or 4. Grey is 0.299 red + 0.587 green +
// 0.114 blue. Opacity is dropped; where it is missing it becomes 255.
DecodedImage with_channels(DecodedImage picture, std::int64_t channels);

// The shape of components. Height and width are unknown if the options leave them to the picture.
PartialShape image_shape(const data::ImageOptions& options);
// Decodes, resizes and converts; errors in the picture are data_loss.
Expected<Tensor> decode_image_tensor(std::string_view content, const data::ImageOptions& options);
// The same into `pixels`, height * width * channels elements of the options' dtype.
// REQUIRES: options with a size.
Status decode_image_into(std::string_view content, const data::ImageOptions& options, void* pixels);

// Converts options to words of a stage and back; invalid_argument for invalid options.
inline constexpr std::size_t kImageWords = 6;
std::vector<std::string> image_words(const data::ImageOptions& options);
Expected<data::ImageOptions> parse_image_words(const StageText& stage, std::size_t first);

}  // namespace troupe
