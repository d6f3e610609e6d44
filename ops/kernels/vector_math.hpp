// Loops over one row that vectorise at every ISA level and give the same bits at each: explicit
// partial sums, and an exponential made of plain arithmetic. Used where a row's result must not
// depend on the alignment of its first element.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace troupe {

// e^x for x <= 0 (what softmax needs), within 2 ulp; 0 below the smallest normal result. The range
// is reduced by n*ln2 in two parts, 2^n is made of bits.
inline float exp_nonpositive(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  float clamped = x < -87.0f ? -87.0f : x;
  float shifted = clamped * 1.44269504f + kRound;
  float n = shifted - kRound;
  float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  std::int32_t exponent =
      std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound);
  float scale = std::bit_cast<float>(std::uint32_t(exponent + 127) << 23);
  return x < -87.0f ? 0.0f : p * scale;
}
inline double exp_nonpositive(double x) { return std::exp(x); }

// 1 / (1 + e^-x) and tanh x, within 2 ulp; NaN stays NaN. tanh is a polynomial where the other
// formula would lose digits.
inline float sigmoid_value(float x) {
  const float e = exp_nonpositive(-std::abs(x)), one_side = 1.0f / (1.0f + e);
  return x < 0.0f ? e * one_side : one_side;
}
inline double sigmoid_value(double x) { return 1 / (1 + std::exp(-x)); }

inline float tanh_value(float x) {
  const float size = std::abs(x), square = x * x;
  float p = -5.7170447e-3f;
  p = p * square + 2.06505861e-2f;
  p = p * square - 5.37434965e-2f;
  p = p * square + 1.33314908e-1f;
  p = p * square - 3.33332837e-1f;
  const float e = exp_nonpositive(-2.0f * size), far = (1.0f - e) / (1.0f + e);
  return size < 0.625f ? x + x * square * p : std::copysign(far, x);
}
inline double tanh_value(double x) { return std::tanh(x); }

// Sums 16 interleaved parts, then the parts pairwise.
template <class T, class F>
T row_sum(std::int64_t n, F&& term) {
  constexpr int kParts = 16;
  T part[kParts] = {};
  std::int64_t i = 0;
  for (; i + kParts <= n; i += kParts)
    for (int j = 0; j < kParts; ++j) part[j] += term(i + j);
  for (int j = 0; i < n; ++i, ++j) part[j] += term(i);
  for (int width = kParts / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) part[j] += part[j + width];
  return part[0];
}

// The largest element; NaN when there is one. REQUIRES: n >= 1.
template <class T>
T row_max(const T* x, std::int64_t n) {
  constexpr int kParts = 16;
  auto larger = [](T a, T b) { return !(b <= a) && a == a ? b : a; };
  T part[kParts];
  for (int j = 0; j < kParts; ++j) part[j] = x[0];
  std::int64_t i = 0;
  for (; i + kParts <= n; i += kParts)
    for (int j = 0; j < kParts; ++j) part[j] = larger(part[j], x[i + j]);
  for (int j = 0; i < n; ++i, ++j) part[j] = larger(part[j], x[i]);
  for (int width = kParts / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) part[j] = larger(part[j], part[j + width]);
  return part[0];
}

}  // namespace troupe
