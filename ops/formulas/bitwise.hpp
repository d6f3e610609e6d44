// Bits of integers.
#pragma once

#include <cstdint>
#include <type_traits>

namespace troupe::formula {

struct BitwiseAnd {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return T(a & b);
  }
};
struct BitwiseOr {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return T(a | b);
  }
};
struct BitwiseXor {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return T(a ^ b);
  }
};
struct Invert {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T x) const {
    return T(~x);
  }
};
// By a negative number of bits: by a very large one, as which it is seen without its sign.
struct LeftShift {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T x, T bits) const {
    return bits < T(8 * sizeof(T)) ? T(std::uint64_t(x) << bits) : T(0);
  }
};
struct RightShift {
  template <class T>
  constexpr T operator()(T x, T bits) const {
    const auto n = static_cast<std::make_unsigned_t<T>>(bits);
    if (n < 8 * sizeof(T)) return T(x >> n);
    return x < 0 ? T(-1) : T(0);
  }
};

}  // namespace troupe::formula
