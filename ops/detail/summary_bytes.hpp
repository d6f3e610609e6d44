// Summaries as TensorFlow's summary.proto writes them, which TensorBoard reads.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe::detail {

// The serialized Summary: a list of values, each with a tag. One owner, one thread.
class SummaryBytes {
 public:
  // What readers of protocol buffers take.
  static constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << 31) - 1;

  struct Histogram {
    double min = 0, max = 0, count = 0, sum = 0, sum_squares = 0;
    std::vector<double> limits, counts;  // upper end of each bucket, exclusive; how many are in it
  };

  void add_scalar(std::string_view tag, float value);
  void add_histogram(std::string_view tag, const Histogram& histogram);
  // A PNG of 1 (gray), 3 (RGB) or 4 (RGBA) channels.
  void add_image(std::string_view tag, std::int64_t height, std::int64_t width,
                 std::int64_t channels, std::string_view png);
  // A WAV of that many frames of `channels` samples.
  void add_audio(std::string_view tag, double sample_rate, std::int64_t channels,
                 std::int64_t frames, std::string_view wav);
  // A tensor of strings for the text plugin. Bytes that are no UTF-8 become U+FFFD.
  void add_text(std::string_view tag, const Tensor& text);
  // The values of a serialized Summary, in their order. invalid_argument: it is none, or has a tag
  // that is empty, no UTF-8, or of a value that is here already.
  Status add_all(std::string_view summary);

  // resource_exhausted: more than kMostBytes.
  Expected<std::string> take() &&;

 private:
  std::string bytes_;
  std::set<std::string> tags_;  // of what add_all brought
};

// "tag/image" of one, "tag/image/0" of several, as TensorFlow says.
std::string numbered_tag(std::string_view tag, std::string_view kind, std::int64_t number,
                         std::int64_t most);
// invalid_argument: it is empty or no UTF-8.
Status check_tag(std::string_view tag);

// Pixels of 8 bits, row by row, as a PNG. invalid_argument: no pixels, or more than PNG takes;
// resource_exhausted: no memory.
Expected<std::string> encode_png(std::span<const std::uint8_t> pixels, std::int64_t height,
                                 std::int64_t width, std::int64_t channels);

// Samples in [-1, 1], frame by frame, as a WAV of 16 bits a sample. Beyond that range they are
// clipped; NaN is silence. invalid_argument: more than a WAV's header can say.
Expected<std::string> encode_wav(std::span<const float> samples, double sample_rate,
                                 std::int64_t channels);

}  // namespace troupe::detail
