// An element as one of another type.
#pragma once

#include <limits>

#include "core/round_to_odd.hpp"
#include "ops/formulas/integers.hpp"

namespace troupe::formula {

// Floats to integers: towards zero, values outside go to the nearest end, NaN to 0 (the plain
// conversion is undefined there). Integers to integers keep the low bits.
template <class To>
struct Convert {
  template <class From>
  constexpr To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
      // The first value above the range, exact in any float; the lowest is minus that, or zero.
      const From end = From(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1)) * 2;
      const From low = std::is_signed_v<To> ? -end : From(0);
      const From clamped = x > low ? x : low;  // NaN becomes low, then 0 below
      const To inside = clamped >= end   ? std::numeric_limits<To>::max()
                        : clamped == low ? std::numeric_limits<To>::min()
                                         : To(clamped);
      return x == x ? inside : To(0);
    } else {
      return To(x);
    }
  }
};

// To f16 or bf16 from what a float does not hold; the float is rounded to them later.
struct ConvertToOdd {
  template <class From>
  float operator()(From x) const {
    return round_to_odd(x);
  }
};

}  // namespace troupe::formula
