#include "ops/data/images/resize_picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace troupe {

namespace {

// Where the pixels of one side of the result come from.
struct Taps {
  struct Range {
    std::int64_t first = 0, count = 0;
  };
  std::vector<Range> ranges;
  std::vector<float> weights;  // of all ranges, one after the other
};

Taps taps_for(std::int64_t size, double begin, double length, std::int64_t results) {
  const double scale = length / double(results);
  const double reach = std::max(scale, 1.0);
  Taps taps;
  for (std::int64_t r = 0; r < results; ++r) {
    const double centre = begin + (double(r) + 0.5) * scale;
    const std::int64_t first =
        std::clamp<std::int64_t>(std::int64_t(std::floor(centre - reach)), 0, size - 1);
    const std::int64_t last =
        std::clamp<std::int64_t>(std::int64_t(std::ceil(centre + reach)), first + 1, size);
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t i = first; i < last; ++i) {
      const double distance = std::abs(double(i) + 0.5 - centre) / reach;
      weights.push_back(std::max(0.0, 1.0 - distance));
      sum += weights.back();
    }
    for (double& weight : weights) taps.weights.push_back(float(weight / sum));
    taps.ranges.push_back({first, last - first});
  }
  return taps;
}

// Channels side by side, of which four are computed at once.
using Four [[gnu::vector_size(16)]] = float;
constexpr std::int64_t kLanes = 4;

// Each result is the sum of its taps in their order. REQUIRES: kLanes numbers behind those of
// `from`.
void resize_row(const float* from, std::int64_t channels, const Taps& across, float* to) {
  const float* weight = across.weights.data();
  for (const Taps::Range& range : across.ranges) {
    const float* const first = from + range.first * channels;
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      Four sum{};
      for (std::int64_t i = 0; i < range.count; ++i) {
        Four pixel;
        std::memcpy(&pixel, first + i * channels + c, sizeof pixel);
        sum += weight[i] * pixel;
      }
      std::memcpy(to + c, &sum, std::size_t(std::min(kLanes, channels - c)) * sizeof(float));
    }
    weight += range.count;
    to += channels;
  }
}

}  // namespace

PictureArea area_for(const DecodedImage& picture, std::int64_t height, std::int64_t width,
                     data::Fit fit) {
  PictureArea area{0, 0, double(picture.height), double(picture.width)};
  if (fit == data::Fit::stretch) return area;
  // Products, not quotients, so that equal ratios compare equal.
  const double across = double(picture.width) * double(height),
               down = double(picture.height) * double(width);
  if (across > down) area.width = down / double(height);
  if (down > across) area.height = across / double(width);
  area.top = (double(picture.height) - area.height) / 2;
  area.left = (double(picture.width) - area.width) / 2;
  return area;
}

std::vector<float> resize_picture(const DecodedImage& picture, const PictureArea& area,
                                  std::int64_t height, std::int64_t width) {
  const std::int64_t channels = picture.channels;
  const Taps across = taps_for(picture.width, area.left, area.width, width);
  const Taps down = taps_for(picture.height, area.top, area.height, height);
  // Rows that some row of the result is made of, resized to its width, and kept while they may be
  // used again.
  std::vector<std::vector<float>> rows(std::size_t(picture.height));
  const std::int64_t line = picture.width * channels;
  std::vector<float> numbers(std::size_t(line + kLanes));
  const auto row_of = [&](std::int64_t y) -> const std::vector<float>& {
    std::vector<float>& row = rows[std::size_t(y)];
    if (!row.empty()) return row;
    row.resize(std::size_t(width * channels));
    const std::uint8_t* from = picture.pixels.data() + y * line;
    for (std::int64_t i = 0; i < line; ++i) numbers[std::size_t(i)] = float(from[i]);
    resize_row(numbers.data(), channels, across, row.data());
    return row;
  };
  std::vector<float> out(std::size_t(height * width * channels));
  const float* weight = down.weights.data();
  std::int64_t kept = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    const Taps::Range& range = down.ranges[std::size_t(y)];
    for (; kept < range.first; ++kept) rows[std::size_t(kept)] = {};
    float* to = out.data() + y * width * channels;
    for (std::int64_t i = 0; i < range.count; ++i) {
      const std::vector<float>& row = row_of(range.first + i);
      const float w = weight[i];
      for (std::int64_t k = 0; k < width * channels; ++k) to[k] += w * row[std::size_t(k)];
    }
    weight += range.count;
  }
  return out;
}

}  // namespace troupe
