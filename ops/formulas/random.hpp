// What the words of a Philox block become.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace troupe::formula {

// [0, 1): every multiple of 2^-24, or 2^-53.
constexpr float unit(std::uint32_t word) { return float(std::int32_t(word >> 8)) * 0x1p-24f; }
constexpr double unit(std::uint32_t low, std::uint32_t high) {
  return double((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

inline constexpr double kPi = 3.14159265358979323846;

// log(x) of a normal number, within 1 ulp. Arithmetic of its own, and so the same bits everywhere.
inline float log_of(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;  // of x over one of [sqrt(1/2), sqrt(2))
  const float f = std::bit_cast<float>(bits - (exponent << 23)) - 1.0f, square = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const float e = float(exponent);
  return f + (p * f * square + e * -2.12194440e-4f - 0.5f * square) + 0.693359375f * e;
}

// cos(2 pi u) and sin(2 pi u) for u in [0, 1): of what u is apart from the nearest quarter.
inline void turn(float u, float& cosine, float& sine) {
  const auto quarter = std::int32_t(u * 4 + 0.5f);
  const float a = (u - float(quarter) * 0.25f) * float(2 * kPi), square = a * a;
  float s = -1.9515295891e-4f * square + 8.3321608736e-3f;
  s = (s * square - 1.6666654611e-1f) * square * a + a;
  float c = 2.443315711809948e-5f * square - 1.388731625493765e-3f;
  c = (c * square + 4.166664568298827e-2f) * square * square - 0.5f * square + 1;
  const float x = quarter & 1 ? s : c, y = quarter & 1 ? c : s;
  cosine = (quarter + 1) & 2 ? -x : x;
  sine = quarter & 2 ? -y : y;
}

}  // namespace troupe::formula
