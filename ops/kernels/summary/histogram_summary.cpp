// HistogramSummary: how the elements of a tensor are distributed (paper, section 9.1).
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "ops/kernels/summary/summary.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

constexpr double kMostDouble = std::numeric_limits<double>::max();

// TensorFlow's buckets: they grow by a tenth from 1e-12 to 1e20, on both sides of 0. Each is named
// by its upper end, which belongs to the next one; but for the last one.
const std::vector<double>& histogram_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    positive.push_back(kMostDouble);
    std::vector<double> all;
    for (auto v = positive.rbegin(); v != positive.rend(); ++v) all.push_back(-*v);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

// Where the search for a number's bucket begins: its first 15 bits, of sign, exponent and mantissa,
// name a range that is narrower than a bucket, so that it ends at once.
constexpr int kRangeShift = 64 - 15;
std::size_t range_of(double value) { return std::bit_cast<std::uint64_t>(value) >> kRangeShift; }

// The bucket of the least number of each range.
const std::vector<std::uint16_t>& first_buckets() {
  static const std::vector<std::uint16_t> first = [] {
    const auto& limits = histogram_limits();
    std::vector<std::uint16_t> all(std::size_t{1} << 15);
    for (std::uint64_t range = 0; range < all.size(); ++range) {
      const bool negative = range >= all.size() / 2;
      const std::uint64_t rest = negative ? (std::uint64_t{1} << kRangeShift) - 1 : 0;
      const auto least = std::bit_cast<double>(range << kRangeShift | rest);
      if (std::isfinite(least))
        all[range] = std::uint16_t(std::upper_bound(limits.begin(), limits.end() - 1, least) -
                                   limits.begin());
    }
    return all;
  }();
  return first;
}

// Of some of the elements; those of several parts are added in their order.
struct Distribution {
  double min = kMostDouble, max = -kMostDouble, count = 0, sum = 0, sum_squares = 0;
  std::vector<double> buckets = std::vector<double>(histogram_limits().size());
  std::optional<std::int64_t> odd;  // the first element that is no finite number

  void add(double value, const double* limits, const std::uint16_t* first) {
    std::size_t at = first[range_of(value)];
    while (at + 1 < buckets.size() && value >= limits[at]) ++at;
    buckets[at] += 1;
    min = std::min(min, value);
    max = std::max(max, value);
    count += 1;
    sum += value;
    sum_squares += value * value;
  }
  void add(const Distribution& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    count += other.count;
    sum += other.sum;
    sum_squares += other.sum_squares;
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
  }
  // Neighbours that are empty are one bucket.
  detail::SummaryBytes::Histogram histogram() const {
    detail::SummaryBytes::Histogram out{min, max, count, sum, sum_squares, {}, {}};
    for (std::size_t i = 0; i < buckets.size();) {
      const double n = buckets[i];
      double end = histogram_limits()[i++];
      for (; n == 0 && i < buckets.size() && buckets[i] == 0; ++i) end = histogram_limits()[i];
      out.limits.push_back(end);
      out.counts.push_back(n);
    }
    return out;
  }
};

template <class T>
struct HistogramSummary final : Kernel {
  static constexpr std::int64_t kLeastChunk = 1 << 16, kMostChunks = 64;

  explicit HistogramSummary(const KernelSpec& s) : tag(s.string_attr("tag")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const T* values = x.data<T>();
    // By the shape alone, so that the sums have the same bits on any number of lanes.
    const std::int64_t n = x.elements();
    const std::int64_t size = std::max(kLeastChunk, (n + kMostChunks - 1) / kMostChunks);
    const std::int64_t chunks = std::max<std::int64_t>(1, (n + size - 1) / size);
    std::vector<Distribution> parts;
    parts.resize(std::size_t(chunks));
    const double* limits = histogram_limits().data();
    const std::uint16_t* first = first_buckets().data();
    ctx.parallel(chunks, [&](std::int64_t chunk) {
      Distribution& part = parts[std::size_t(chunk)];
      for (std::int64_t i = chunk * size; i < std::min(n, (chunk + 1) * size); ++i) {
        const auto value = double(Compute<T>(values[i]));
        if (!std::isfinite(value)) {
          part.odd = i;
          return;
        }
        part.add(value, limits, first);
      }
    });
    for (const Distribution& part : parts)
      if (part.odd)
        return invalid_argument(
            fmt::format("the histogram '{}' cannot have {}, element {} of {}", tag,
                        std::isnan(double(Compute<T>(values[*part.odd]))) ? "NaN" : "an infinity",
                        *part.odd, x.shape().text()));
    for (std::size_t i = 1; i < parts.size(); ++i) parts[0].add(parts[i]);
    detail::SummaryBytes summary;
    summary.add_histogram(tag, parts[0].histogram());
    return set_summary(ctx, std::move(summary));
  }
  std::string tag;
};

}  // namespace

TROUPE_OPS(histogram_summary) {
  r.add({.name = "HistogramSummary",
         .in = {"x"},
         .out = {"summary: string"},
         .types = kNumbers,
         .attrs = {"tag: string"},
         .shape = tagged_summary_shape,
         .no_gradient = kNoSummaryGradient,
         .doc = "A serialized Summary protocol buffer with the distribution of all elements of x: "
                "minimum, maximum, number, sum, sum of squares, and TensorFlow's buckets, each 10 "
                "% wider than the one before. Fails the run for NaN and infinities, naming the tag "
                "and the first such element. An empty x gives an empty histogram."})
      .cpu(typed_kernel<HistogramSummary, Numbers>);
}
