#include "ops/detail/summary_bytes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "core/utf8.hpp"

namespace troupe::detail {
namespace {

using protozero::pbf_writer;

// Field numbers of tensorflow/core/framework: summary.proto, tensor.proto, tensor_shape.proto.
constexpr std::uint32_t kSummaryValue = 1;
namespace value_field {
constexpr std::uint32_t kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kAudio = 6,
                        kTensor = 8, kMetadata = 9;
}
constexpr int kStringType = 7;  // DT_STRING

}  // namespace

void SummaryBytes::add_scalar(std::string_view tag, float value) {
  pbf_writer summary(bytes_);
  pbf_writer out(summary, kSummaryValue);
  out.add_string(value_field::kTag, tag.data(), tag.size());
  out.add_float(value_field::kSimpleValue, value);
}

void SummaryBytes::add_histogram(std::string_view tag, const Histogram& histogram) {
  pbf_writer summary(bytes_);
  pbf_writer out(summary, kSummaryValue);
  out.add_string(value_field::kTag, tag.data(), tag.size());
  pbf_writer h(out, value_field::kHistogram);
  h.add_double(1, histogram.min);
  h.add_double(2, histogram.max);
  h.add_double(3, histogram.count);
  h.add_double(4, histogram.sum);
  h.add_double(5, histogram.sum_squares);
  h.add_packed_double(6, histogram.limits.begin(), histogram.limits.end());
  h.add_packed_double(7, histogram.counts.begin(), histogram.counts.end());
}

void SummaryBytes::add_image(std::string_view tag, std::int64_t height, std::int64_t width,
                             std::int64_t channels, std::string_view png) {
  pbf_writer summary(bytes_);
  pbf_writer out(summary, kSummaryValue);
  out.add_string(value_field::kTag, tag.data(), tag.size());
  pbf_writer image(out, value_field::kImage);
  image.add_int32(1, std::int32_t(height));
  image.add_int32(2, std::int32_t(width));
  image.add_int32(3, std::int32_t(channels));
  image.add_bytes(4, png.data(), png.size());
}

void SummaryBytes::add_audio(std::string_view tag, double sample_rate, std::int64_t channels,
                             std::int64_t frames, std::string_view wav) {
  pbf_writer summary(bytes_);
  pbf_writer out(summary, kSummaryValue);
  out.add_string(value_field::kTag, tag.data(), tag.size());
  pbf_writer audio(out, value_field::kAudio);
  audio.add_float(1, float(sample_rate));
  audio.add_int64(2, channels);
  audio.add_int64(3, frames);
  audio.add_bytes(4, wav.data(), wav.size());
  audio.add_string(5, "audio/wav");
}

void SummaryBytes::add_text(std::string_view tag, const Tensor& text) {
  pbf_writer summary(bytes_);
  pbf_writer out(summary, kSummaryValue);
  out.add_string(value_field::kTag, tag.data(), tag.size());
  {
    pbf_writer tensor(out, value_field::kTensor);
    tensor.add_enum(1, kStringType);
    {
      pbf_writer shape(tensor, 2);
      for (const std::int64_t dim : text.shape().dims()) {
        pbf_writer one(shape, 2);
        one.add_int64(1, dim);
      }
    }
    const std::string* strings = text.data<std::string>();
    for (std::int64_t i = 0; i < text.elements(); ++i) tensor.add_bytes(8, as_utf8(strings[i]));
  }
  pbf_writer metadata(out, value_field::kMetadata);
  pbf_writer plugin(metadata, 1);
  plugin.add_string(1, "text");
}

Status SummaryBytes::add_all(std::string_view summary) try {
  protozero::pbf_reader in(summary.data(), summary.size());
  pbf_writer out(bytes_);
  while (in.next()) {
    if (in.tag_and_type() !=
        protozero::tag_and_type(kSummaryValue, protozero::pbf_wire_type::length_delimited)) {
      in.skip();
      continue;
    }
    const protozero::data_view value = in.get_view();
    std::string tag;
    for (protozero::pbf_reader fields(value); fields.next();)
      if (fields.tag_and_type() ==
          protozero::tag_and_type(value_field::kTag, protozero::pbf_wire_type::length_delimited))
        tag = fields.get_string();
      else
        fields.skip();
    TROUPE_TRY(check_tag(tag));
    if (!tags_.insert(tag).second)
      return invalid_argument(fmt::format("two values have the tag '{}'", tag));
    out.add_message(kSummaryValue, value.data(), value.size());
  }
  return ok_status();
} catch (const protozero::exception& e) {
  return invalid_argument(fmt::format("it is no serialized Summary: {}", e.what()));
}

Expected<std::string> SummaryBytes::take() && {
  if (bytes_.size() > kMostBytes)
    return resource_exhausted(
        fmt::format("the summary has {} bytes, and may have {}", bytes_.size(), kMostBytes));
  return std::move(bytes_);
}

std::string numbered_tag(std::string_view tag, std::string_view kind, std::int64_t number,
                         std::int64_t most) {
  return most == 1 ? fmt::format("{}/{}", tag, kind) : fmt::format("{}/{}/{}", tag, kind, number);
}

Status check_tag(std::string_view tag) {
  if (tag.empty()) return invalid_argument("a tag is empty");
  if (!is_utf8(tag)) return invalid_argument("the tag '" + as_utf8(tag) + "' is not UTF-8");
  return ok_status();
}

namespace {

// By one byte at a time, least significant first.
template <class T>
void append_le(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out += char((value >> (8 * i)) & 0xFF);
}

std::int16_t sample_of(float value) {
  if (std::isnan(value)) return 0;
  const float scaled = std::round(value * 32768.0f);
  return std::int16_t(std::clamp(scaled, -32768.0f, 32767.0f));
}

}  // namespace

Expected<std::string> encode_wav(std::span<const float> samples, double sample_rate,
                                 std::int64_t channels) {
  constexpr std::uint32_t kHeader = 44, kSampleBytes = 2;
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  if (!(sample_rate >= 1 && sample_rate <= kMost))
    return invalid_argument(
        fmt::format("sample_rate is a number from 1 to 4294967295, not {}", sample_rate));
  if (channels < 1 || channels > std::numeric_limits<std::uint16_t>::max())
    return invalid_argument(fmt::format("sound has from 1 to 65535 channels, not {}", channels));
  const auto rate = std::uint32_t(sample_rate);
  const double data = double(samples.size()) * kSampleBytes;
  const auto frame_bytes = std::uint32_t(channels) * kSampleBytes;
  if (data + kHeader > kMost || double(rate) * frame_bytes > kMost)
    return invalid_argument(
        fmt::format("{} samples of {} channels at {} Hz are more than a WAV has", samples.size(),
                    channels, rate));
  std::string out;
  out.reserve(kHeader + std::size_t(data));
  out += "RIFF";
  append_le(out, std::uint32_t(kHeader - 8 + std::uint32_t(data)));
  out += "WAVEfmt ";
  append_le(out, std::uint32_t{16});
  append_le(out, std::uint16_t{1});  // PCM
  append_le(out, std::uint16_t(channels));
  append_le(out, rate);
  append_le(out, rate * frame_bytes);
  append_le(out, std::uint16_t(frame_bytes));
  append_le(out, std::uint16_t{8 * kSampleBytes});
  out += "data";
  append_le(out, std::uint32_t(data));
  for (const float sample : samples) append_le(out, std::uint16_t(sample_of(sample)));
  return out;
}

}  // namespace troupe::detail
