// What of the standard library formulas and device kernels use, for NVRTC, which has none: it finds
// this in place of <cmath>, <cstdint>, <type_traits> and the like.
#pragma once

namespace std {

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
using size_t = decltype(sizeof(0));

using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::expm1;
using ::floor;
using ::fma;
using ::fmod;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log1p;
using ::pow;
using ::rint;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;

template <bool condition, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool condition, class A, class B>
using conditional_t = typename conditional<condition, A, B>::type;

template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
inline constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, char> || is_same_v<T, int8_t> || is_same_v<T, int16_t> ||
    is_same_v<T, int32_t> || is_same_v<T, int64_t> || is_same_v<T, uint8_t> ||
    is_same_v<T, uint16_t> || is_same_v<T, uint32_t> || is_same_v<T, uint64_t> ||
    is_same_v<T, long long> || is_same_v<T, unsigned long long>;
template <class T>
inline constexpr bool is_signed_v = (is_integral_v<T> || is_floating_point_v<T>)&&T(-1) < T(0);
template <class T>
concept integral = is_integral_v<T>;

template <class T>
using make_unsigned_t = conditional_t<
    sizeof(T) == 1, uint8_t,
    conditional_t<sizeof(T) == 2, uint16_t, conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// No constant, and so neither are infinities: compilers before CUDA 12.3 have no builtins for them.
template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
struct numeric_limits {  // of integers
  static constexpr int digits = int(8 * sizeof(T)) - (is_signed_v<T> ? 1 : 0);
  static constexpr T max() {
    return T(make_unsigned_t<T>(~make_unsigned_t<T>(0)) >> (is_signed_v<T> ? 1 : 0));
  }
  static constexpr T min() { return is_signed_v<T> ? T(-max() - 1) : T(0); }
};
template <>
struct numeric_limits<float> {
  static constexpr float max() { return 0x1.fffffep127f; }
  static float infinity() { return bit_cast<float>(0x7f800000u); }
  static float quiet_NaN() { return bit_cast<float>(0x7fc00000u); }
};
template <>
struct numeric_limits<double> {
  static constexpr double max() { return 0x1.fffffffffffffp1023; }
  static double infinity() { return bit_cast<double>(0x7ff0000000000000ul); }
  static double quiet_NaN() { return bit_cast<double>(0x7ff8000000000000ul); }
};

}  // namespace std
