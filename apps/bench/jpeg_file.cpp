#include "apps/bench/jpeg_file.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
// After stdio, which it does not include.
#include <jpeglib.h>

#include <algorithm>

#include "core/hash.hpp"

namespace troupe {
namespace {

constexpr int kQuality = 90;

// Waves of several lengths, and grain.
std::vector<unsigned char> drawn_pixels(int height, int width, std::uint64_t seed) {
  Random random(seed);
  struct Wave {
    double x, y, phase, strength[3];
  };
  std::vector<Wave> waves(12);
  for (std::size_t i = 0; i < waves.size(); ++i) {
    const double scale = 0.01 * double(1 << (i / 2));
    const auto drawn = [&] { return double(random.below(2001)) / 1000 - 1; };
    waves[i] = {scale * drawn(), scale * drawn(), 3 * drawn(), {}};
    for (double& strength : waves[i].strength) strength = 40 * drawn() / double(1 + i / 3);
  }
  std::vector<unsigned char> pixels;
  pixels.reserve(std::size_t(height) * std::size_t(width) * 3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double colour[3] = {128, 128, 128};
      for (const Wave& wave : waves) {
        const double height_of_wave = std::sin(wave.x * x + wave.y * y + wave.phase);
        for (int c = 0; c < 3; ++c) colour[c] += wave.strength[c] * height_of_wave;
      }
      const double grain = double(random.below(13)) - 6;
      for (const double value : colour)
        pixels.push_back(static_cast<unsigned char>(std::clamp(value + grain, 0.0, 255.0)));
    }
  return pixels;
}

}  // namespace

std::string drawn_jpeg_file(int height, int width, std::uint64_t seed) {
  const std::vector<unsigned char> pixels = drawn_pixels(height, width, seed);
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &data, &size);
  encoder.image_width = JDIMENSION(width);
  encoder.image_height = JDIMENSION(height);
  encoder.input_components = 3;
  encoder.in_color_space = JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, kQuality, TRUE);
  jpeg_start_compress(&encoder, TRUE);
  while (encoder.next_scanline < encoder.image_height) {
    auto* row = const_cast<unsigned char*>(pixels.data()) +
                std::size_t(encoder.next_scanline) * std::size_t(width) * 3;
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string file(reinterpret_cast<char*>(data), size);
  std::free(data);
  return file;
}

void decode_by_libjpeg(std::string_view file, std::vector<unsigned char>& pixels) {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors;
  decoder.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char*>(file.data()),
               static_cast<unsigned long>(file.size()));
  jpeg_read_header(&decoder, TRUE);
  decoder.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&decoder);
  const std::size_t row = std::size_t(decoder.output_width) * 3;
  pixels.resize(std::max(pixels.size(), row * decoder.output_height));
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW to = pixels.data() + decoder.output_scanline * row;
    jpeg_read_scanlines(&decoder, &to, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
}

}  // namespace troupe
