// Floats that say whether something is missing, so that they can be rounded once more.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

namespace troupe {

// The float at x, or one of the two around it: that of which the last bit is set, which says that
// something is missing. What has fewer bits is rounded from it as from x.
inline float round_to_odd(double x) {
  const float nearest = float(x);
  const double back = double(nearest);
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (back != x && x == x) bits = (bits - (std::abs(back) > std::abs(x))) | 1;
  return std::bit_cast<float>(bits);
}
template <std::integral T>
float round_to_odd(T x) {
  auto size = x < 0 ? std::uint64_t{0} - std::uint64_t(x) : std::uint64_t(x);
  if (size >> 53)  // more than a double holds: the same in its last bit
    size = (size & ~std::uint64_t{0x7ff}) | (size & 0x7ff ? 0x800 : 0);
  const float result = round_to_odd(double(size));
  return x < 0 ? -result : result;
}

}  // namespace troupe
