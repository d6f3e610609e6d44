// The elementary functions of kernels, of one value or of a Packet, and loops over one row. Both
// vectorise at every ISA level. Errors are in units in the last place of the exact result,
// subnormal results included; at infinities, zeros and NaN the functions are those of the C
// library.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "ops/kernels/support/packet.hpp"

namespace troupe {

// Minimax polynomials, the lowest power first. ln 2 is the sum of a part with few bits, whose small
// multiples are exact, and of the rest.
template <class T>
struct MathConstants;
template <>
struct MathConstants<float> {
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kLog2High = 0x1.63p-1f, kLog2Low = -0x1.bd0106p-13f;
  static constexpr float kExpLow = -104, kExpHigh = 89;  // beyond: 0 and inf
  static constexpr float kExpNormal = 87;                // within -+ this: normal numbers
  static constexpr float kExpShift = 0;
  static constexpr float kExp[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558aep-5f, 0x1.12397cp-7f,
                                   0x1.6a4efp-10f};
  static constexpr float kLog[] = {0x1.555546p-2f,  -0x1.fffffp-3f,  0x1.99a544p-3f,
                                   -0x1.556276p-3f, 0x1.233284p-3f,  -0x1.fb5158p-4f,
                                   0x1.e66228p-4f,  -0x1.e29eb6p-4f, 0x1.1ac2aep-4f};
};
template <>
struct MathConstants<double> {
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kExpLow = -746, kExpHigh = 710, kExpNormal = 708;
  static constexpr double kExpShift = 0.058891517828191727;  // ln 2 / 2 - ln(4 / 3)
  static constexpr double kExp[] = {
      0x1.ffffffffffffep-2,  0x1.55555555556d8p-3,  0x1.55555555560e8p-5,  0x1.11111110908dcp-7,
      0x1.6c16c16a319f6p-10, 0x1.a01a05425b290p-13, 0x1.a019f697a0f9ap-16, 0x1.71d330c4552dbp-19,
      0x1.283e01b5e9e34p-22, 0x1.c6ca5e2b9a32ep-26};
  static constexpr double kLog[] = {
      0x1.5555555555593p-1, 0x1.999999997fa6cp-2, 0x1.249249421f0d2p-2, 0x1.c71c51e3f5e26p-3,
      0x1.746646afd2b08p-3, 0x1.39a0edf383b0bp-3, 0x1.2f0da3eca751cp-3};
};
// For functions of floats that are computed in double: about 34 bits are right.
struct ShortConstants : MathConstants<double> {
  static constexpr double kExpLow = -700.0, kExpHigh = 700.0;  // far beyond the range of floats
  static constexpr double kExpShift = 0;
  static constexpr double kExp[] = {0x1.0000003a3d275p-1,  0x1.5555544a8ce6cp-3,
                                    0x1.55548db4e3978p-5,  0x1.111268cbf9ea4p-7,
                                    0x1.6d8d07b223823p-10, 0x1.9f10f113a0092p-13};
  static constexpr double kLog[] = {0x1.555555561f31bp-1, 0x1.999996a69c337p-2,
                                    0x1.2494131f6de82p-2, 0x1.c62aaa3b9f33ep-3,
                                    0x1.911be94b79e59p-3};
};

template <class V, std::size_t n>
TROUPE_INLINE V polynomial(V x, const ElementOf<V> (&coefficients)[n]) {
  // Written out: a loop in a loop would keep the outer one from being vectorised.
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    V sum = splat<V>(coefficients[n - 1]);
    ((sum = multiply_add(sum, x, coefficients[n - 2 - i])), ...);
    return sum;
  }
  (std::make_index_sequence<n - 1>());
}

// The same by pairs of powers, which wait less for one another.
template <class V, std::size_t n>
TROUPE_INLINE V paired_polynomial(V x, V square, const ElementOf<V> (&coefficients)[n]) {
  static_assert(n % 2 == 0);
  const auto pair = [&](std::size_t i) {
    return multiply_add(x, coefficients[i + 1], splat<V>(coefficients[i]));
  };
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    V sum = pair(n - 2);
    ((sum = multiply_add(sum, square, pair(n - 4 - 2 * i))), ...);
    return sum;
  }
  (std::make_index_sequence<n / 2 - 1>());
}

// Adding it rounds to an integer, which is then in the lowest bits of the sum.
template <class T>
inline constexpr T kRound = T(1.5) * T(std::uint64_t{1} << MathConstants<T>::kMantissa);

// 2^n of an integer n, for normal results.
template <class V>
TROUPE_INLINE V power_of_two(V n) {
  using C = MathConstants<ElementOf<V>>;
  return from_bits<V>(to_bits(n + (kRound<ElementOf<V>> + C::kBias)) << C::kMantissa);
}

// y 2^n of an integer n, rounded once: multiplied in two parts, since 2^n may be outside the normal
// range.
template <class V>
TROUPE_INLINE V scaled(V y, V n) {
  using T = ElementOf<V>;
  const V round = splat<V>(kRound<T>), half = multiply_add(n, splat<V>(T(0.5)), round) - round;
  return y * power_of_two(half) * power_of_two(n - half);
}

// e^x = 2^n (1 + r + r^2 p), of an x between C::kExpLow and C::kExpHigh. With kExpShift 1 + r + ...
// is in [3/4, 3/2), where the roundings of r and of what is added to 1 count least.
template <class V>
struct ExpParts {
  V n, r, square, p;
};
template <class C, class V>
TROUPE_INLINE ExpParts<V> exp_parts(V x) {
  using T = ElementOf<V>;
  const V round = splat<V>(kRound<T>), from = C::kExpShift == 0 ? x : x - C::kExpShift;
  const V n = multiply_add(from, splat<V>(T(1.4426950408889634)), round) - round;
  const V r = multiply_add(n, splat<V>(-C::kLog2Low), multiply_add(n, splat<V>(-C::kLog2High), x));
  const V square = r * r;
  if constexpr (std::is_same_v<T, float>)
    return {n, r, square, polynomial(r, C::kExp)};
  else
    return {n, r, square, paired_polynomial(r, square, C::kExp)};
}
// 1 + r + r^2 p, of floats with little more than one rounding.
template <class V>
TROUPE_INLINE V exp_of_rest(const ExpParts<V>& e) {
  const V one = splat<V>(1);
  if constexpr (std::is_same_v<ElementOf<V>, double>) return one + multiply_add(e.p, e.square, e.r);
  const V sum = one + e.r;
  return sum + multiply_add(e.p, e.square, e.r - (sum - one));
}
template <class C, class V>
TROUPE_INLINE V exp_clamped(V x) {
  return clamped(x, C::kExpLow, C::kExpHigh);
}
// e^x of an x that is NaN or gives a normal number.
template <class C, class V>
TROUPE_INLINE V exp_normal(V x) {
  const ExpParts<V> e = exp_parts<C>(x);
  if constexpr (kScales && !std::is_same_v<V, ElementOf<V>>) return scaled(exp_of_rest(e), e.n);
  return exp_of_rest(e) * power_of_two(e.n);
}
// e^x, within 1 ulp. Packs whose results are normal numbers take a shorter way to the same bits.
template <class V>
TROUPE_INLINE V exp_value(V x) {
  using T = ElementOf<V>;
  using C = MathConstants<T>;
  if constexpr (!kScales && !std::is_same_v<V, T>)
    if (!any_lane(magnitude(x) > splat<V>(C::kExpNormal))) return exp_normal<C>(x);
  const ExpParts<V> e = exp_parts<C>(exp_clamped<C>(x));
  return scaled(exp_of_rest(e), e.n);
}

// x = 2^exponent (1 + f), with 1 + f in [sqrt(1/2), sqrt(2)). REQUIRES: x is normal and positive.
template <class V>
struct LogParts {
  V exponent, f;
};
template <class V>
TROUPE_INLINE LogParts<V> log_parts(V x) {
  using T = ElementOf<V>;
  using Bits = BitsOf<T>;
  constexpr int kMantissa = MathConstants<T>::kMantissa;
  constexpr Bits kStart = std::bit_cast<Bits>(T(0.70710678118654752));
  constexpr T kUnit = T(std::uint64_t{1} << kMantissa);  // its last bit counts ones
  const auto bits = to_bits(x) + (std::bit_cast<Bits>(T(1)) - kStart);
  const auto mantissa = bits & ((Bits{1} << kMantissa) - 1);
  const V exponent = from_bits<V>((bits >> kMantissa) | std::bit_cast<Bits>(kUnit));
  return {exponent - (kUnit + MathConstants<T>::kBias), from_bits<V>(mantissa + kStart) - T(1)};
}
// exponent ln 2 + log(1 + f) + rest. In floats log(1 + f) = f - f^2 / 2 + f^3 P(f), in doubles
// 2 s + 2/3 s^3 + ... with s = f / (2 + f).
template <class C, class V>
TROUPE_INLINE V log_of_parts(V exponent, V f, V rest) {
  using T = ElementOf<V>;
  const V low = multiply_add(exponent, C::kLog2Low, rest), half = f * f * T(0.5);
  if constexpr (std::is_same_v<T, float>) {
    const V small = multiply_add(polynomial(f, C::kLog), f * (half + half), low);
    return multiply_add(exponent, C::kLog2High, (small - half) + f);
  } else {
    const V s = f / (f + T(2)), square = s * s;
    const V small = multiply_add(s, multiply_add(polynomial(square, C::kLog), square, half), low);
    return multiply_add(exponent, C::kLog2High, f - (half - small));
  }
}
// `y` in (low, inf); -inf at low, NaN below, inf at inf.
template <class V>
TROUPE_INLINE V log_ends(V x, ElementOf<V> low, V y) {
  using Limits = std::numeric_limits<ElementOf<V>>;
  const V inf = splat<V>(Limits::infinity()), start = splat<V>(low);
  const V ends = choose(x == start, -inf, splat<V>(Limits::quiet_NaN()));
  return choose(x > start, choose(x < inf, y, x), ends);
}

// The natural logarithm, within 1 ulp.
template <class V>
TROUPE_INLINE V log_value(V x) {
  using T = ElementOf<V>;
  using C = MathConstants<T>;
  constexpr int kShift = C::kMantissa + 2;
  const auto subnormal = x < splat<V>(std::numeric_limits<T>::min());
  const auto [exponent, f] = log_parts(choose(subnormal, x * T(std::uint64_t{1} << kShift), x));
  const V right = choose(subnormal, exponent - T(kShift), exponent);
  return log_ends(x, T(0), log_of_parts<C>(right, f, V{}));
}

// log(1 + x), within 1 ulp.
template <class V>
TROUPE_INLINE V log1p_value(V x) {
  using T = ElementOf<V>;
  const V one = splat<V>(1), sum = x + one;
  const auto [exponent, f] = log_parts(sum);
  // What the sum has lost, in units of its power of two; nothing that counts where x is large.
  const auto large = x > splat<V>(T(std::uint64_t{1} << 60));
  const V lost = choose(large, V{}, choose(x > one, one - (sum - x), x - (sum - one)));
  const V more = lost * power_of_two(-choose(large, V{}, exponent));
  const V whole = f + more, rest = (more - (whole - f)) * (one - whole);
  return log_ends(x, T(-1), with_sign(log_of_parts<MathConstants<T>>(exponent, whole, rest), x));
}

// e^x - 1 of floats, within 1 ulp.
template <class V>
TROUPE_INLINE V expm1_value(V x) {
  auto wide = [](auto x) {
    const auto e = exp_parts<ShortConstants>(exp_clamped<ShortConstants>(x));
    const auto scale = power_of_two(e.n);
    return multiply_add(multiply_add(e.p, e.square, e.r), scale, scale - 1.0);
  };
  return with_sign(in_double(wide, x), x);
}

// 1 / (1 + e^-x), within 2.5 ulp.
template <class V>
TROUPE_INLINE V sigmoid_value(V x) {
  const V e = exp_value(-magnitude(x)), one = splat<V>(1);
  return choose(x < V{}, e, one) / (one + e);
}

// f of each lane.
template <class F>
Packet<double> lane_by_lane(Packet<double> x, F f) {
  double values[kPacketWidth<double>];
  store_packet(values, x);
  for (double& value : values) value = f(value);
  return load_packet(values);
}

// tanh of floats, within 2 ulp: a polynomial where the other formula would lose digits.
template <class V>
TROUPE_INLINE V tanh_value(V x) {
  constexpr float kNear[] = {-3.33332837e-1f, 1.33314908e-1f, -5.37434965e-2f, 2.06505861e-2f,
                             -5.7170447e-3f};
  const V size = magnitude(x), square = x * x, one = splat<V>(1), most = splat<V>(20);
  const V near = multiply_add(size * square, polynomial(square, kNear), size);
  const V e = exp_normal<MathConstants<float>>(choose(size > most, most, size) * -2.0f);
  return with_sign(choose(size < splat<V>(0.625f), near, (one - e) / (one + e)), x);
}
TROUPE_INLINE double tanh_value(double x) { return std::tanh(x); }
TROUPE_INLINE Packet<double> tanh_value(Packet<double> x) {
  return lane_by_lane(x, [](double value) { return std::tanh(value); });
}

// erf of floats, within 1 ulp: x + x P(x^2) near 0, else 1 - e^-(|x| + Q(|x|)).
template <class V>
TROUPE_INLINE V erf_value(V x) {
  constexpr float kNear[] = {0x1.06eba8p-3f,  -0x1.812724p-2f, 0x1.ce251p-4f,
                             -0x1.b730aep-6f, 0x1.4b5668p-8f,  -0x1.4c5086p-11f};
  constexpr float kFar[] = {-0x1.4389a2p-13f, 0x1.090a7ap-3f, 0x1.44613ap-1f,   0x1.ba8fc8p-4f,
                            -0x1.990b5ep-6f,  0x1.0d7976p-8f, -0x1.ba8f98p-12f, 0x1.4fadep-16f};
  const V size = magnitude(x), one = splat<V>(1), most = splat<V>(4);
  const V near = multiply_add(size, polynomial(x * x, kNear), size);
  const V clamped = choose(size > most, most, size);  // beyond, erf rounds to 1
  const V more = polynomial(clamped, kFar), sum = clamped + more, lost = more - (sum - clamped);
  // e^-sum is a fifth of the result at most: less exact than exp_value.
  const V round = splat<V>(kRound<float>), n = multiply_add(sum, -1.44269504f, round) - round;
  const V r = multiply_add(n, -0.693147182f, -sum);
  const V e =
      (multiply_add(polynomial(r, MathConstants<float>::kExp), r * r, r) + 1.0f) * power_of_two(n);
  const V far = one - multiply_add(-e, lost, e);
  return with_sign(choose(size < splat<V>(0.85f), near, far), x);
}
// dy 2 / sqrt(pi) e^(-x^2) of floats, within 1 ulp.
template <class V>
TROUPE_INLINE V erf_slope(V dy, V x) {
  auto wide = []<class D>(D dy, D x) {
    const D square = x * x, e = exp_normal<ShortConstants>(exp_clamped<ShortConstants>(-square));
    return dy * 1.1283791670955126 * choose(square > splat<D>(700.0), D{}, e);
  };
  return in_double(wide, dy, x);
}

// sin x (quarters = 0) and cos x (1), of a float, or of a double that was one: accurate where |x|
// is kTurned at most. pi / 2 is split like ln 2 above, so that n parts of a float's 11 bits are
// exact.
template <class T>
inline constexpr T kTurned = std::is_same_v<T, float> ? T(12e3) : T(1e6);
template <int quarters, class V>
TROUPE_INLINE V sine_near(V x) {
  using T = ElementOf<V>;
  const V round = splat<V>(kRound<T>), shifted = multiply_add(x, T(0x1.45f306dc9c883p-1), round);
  const V n = shifted - round, one = splat<V>(1);
  V r, rest = V{};
  if constexpr (std::is_same_v<T, float>) {
    const V most = multiply_add(n, -0x1.fb4p-12f, multiply_add(n, -0x1.92p+0f, x));
    const V part = n * 0x1.444p-24f;
    r = most - part;
    rest = multiply_add(n, -0x1.68c234p-39f, (most - r) - part);
  } else {
    r = multiply_add(n, -0x1.0b4611a626331p-34, multiply_add(n, -0x1.921fb544p+0, x));
  }
  constexpr T kSine[] = {T(-0x1.5555554cb6c11p-3), T(0x1.111108946b341p-7),
                         T(-0x1.a00f9c53a1c13p-13), T(0x1.6cd80ef022fd4p-19)};
  constexpr T kCosine[] = {T(0x1.55554aaf48cfdp-5), T(-0x1.6c0c8911f4161p-10),
                           T(0x1.9a01a2dde559bp-16)};
  const V square = r * r, half = square * T(0.5), top = one - half;
  const V sine = r + multiply_add(polynomial(square, kSine), square * r, rest);
  const V lost = multiply_add(-r, rest, (one - top) - half);
  const V cosine = top + multiply_add(polynomial(square, kCosine), square * square, lost);
  const auto turns = to_bits(shifted) + BitsOf<T>(quarters);
  const V size = choose((turns & 1) == 0, sine, cosine);
  const V y = from_bits<V>(to_bits(size) ^ ((turns & 2) << (8 * sizeof(T) - 2)));
  return quarters == 0 ? choose(x == V{}, x, y) : y;  // -0 stays
}
// sin and cos of floats, within 1 ulp. Few arguments are so large that the C library computes them.
template <int quarters>
inline float sine_value(float x) {
  const float size = std::abs(x);
  if (size <= kTurned<float>) return sine_near<quarters>(x);
  if (size <= kTurned<double>) return float(sine_near<quarters>(double(x)));
  return float(quarters == 0 ? std::sin(double(x)) : std::cos(double(x)));
}
// Of a packet with such arguments, given what sine_near says. A call, so that loops are short.
template <int quarters>
__attribute__((noinline)) Packet<float> sine_farther(Packet<float> x, Packet<float> y) {
  const Packet<float> size = magnitude(x);
  const auto near = size <= splat<Packet<float>>(kTurned<float>);
  const Packet<float> farther =
      choose(near, y, in_double([](Packet<double> x) { return sine_near<quarters>(x); }, x));
  if (!any_lane(~(size <= splat<Packet<float>>(kTurned<double>)))) return farther;
  float from[kPacketWidth<float>], to[kPacketWidth<float>];
  store_packet(from, x);
  store_packet(to, farther);
  for (std::int64_t i = 0; i < kPacketWidth<float>; ++i)
    if (!(std::abs(from[i]) <= kTurned<double>)) to[i] = sine_value<quarters>(from[i]);
  return load_packet(to);
}
template <int quarters>
TROUPE_INLINE Packet<float> sine_value(Packet<float> x) {
  const Packet<float> y = sine_near<quarters>(x);
  if (!any_lane(~(magnitude(x) <= splat<Packet<float>>(kTurned<float>)))) return y;
  return sine_farther<quarters>(x, y);
}

// a^b of floats, within 1 ulp.
template <class V>
TROUPE_INLINE V pow_value(V a, V b) {
  auto wide = []<class D>(D a, D b) {
    const D size = magnitude(a), one = splat<D>(1), round = splat<D>(kRound<double>);
    const D inf = splat<D>(std::numeric_limits<double>::infinity());
    const auto [exponent, f] = log_parts(size);
    const D log = choose(size == D{}, -inf, log_of_parts<ShortConstants>(exponent, f, D{}));
    D y =
        exp_normal<ShortConstants>(exp_clamped<ShortConstants>(b * choose(size < inf, log, size)));
    y = choose((b == D{}) | (a == one) | ((size == one) & (magnitude(b) == inf)), one, y);
    // A negative a: odd powers are negative, and only whole ones exist.
    const D most = splat<D>(double(1 << 30));  // floats from here on are even
    const D power = choose(magnitude(b) > most, most, b), shifted = power + round;
    const D negated = from_bits<D>(to_bits(y) ^ (to_bits(shifted) << 63));
    const D nan = splat<D>(std::numeric_limits<double>::quiet_NaN());
    const D other = choose((size == D{}) | (size == inf), y, nan);
    return choose((to_bits(a) >> 63) == 0, y, choose(shifted - round == power, negated, other));
  };
  return in_double(wide, a, b);
}

template <class T, std::size_t N>
T pairwise_sum(T (&part)[N]) {
  for (std::size_t width = N / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) part[j] += part[j + width];
  return part[0];
}

// Sums interleaved parts, then the parts pairwise.
template <class T, int kParts = 16, class F>
T row_sum(std::int64_t n, F&& term) {
  T part[kParts] = {};
  std::int64_t i = 0;
  for (; i + kParts <= n; i += kParts)
    for (int j = 0; j < kParts; ++j) part[j] += term(i + j);
  for (int j = 0; i < n; ++i, ++j) part[j] += term(i);
  return pairwise_sum(part);
}

// Two sums over one row, each as row_sum makes it: term(j, a, b) sets the terms of both.
template <class T>
struct TwoSums {
  T first, second;
};
template <class T, int kParts = 16, class F>
TwoSums<T> two_row_sums(std::int64_t n, F&& term) {
  T first[kParts] = {}, second[kParts] = {};
  std::int64_t i = 0;
  for (; i + kParts <= n; i += kParts)
    for (int j = 0; j < kParts; ++j) {
      T a, b;
      term(i + j, a, b);
      first[j] += a;
      second[j] += b;
    }
  for (int j = 0; i < n; ++i, ++j) {
    T a, b;
    term(i, a, b);
    first[j] += a;
    second[j] += b;
  }
  return {pairwise_sum(first), pairwise_sum(second)};
}

// A sum over one row as row_sum makes it, of packets in their order, the last one padded with 0.
template <class T>
class RowSum {
 public:
  void add(Packet<T> x) {
    parts_[at_] += x.low;
    parts_[(at_ + 1) % kVectors] += x.high;
    if constexpr (kVectors > 2) at_ = (at_ + 2) % kVectors;
  }
  T sum() const {
    T part[kParts];
    std::memcpy(part, parts_, sizeof(part));
    return pairwise_sum(part);
  }

 private:
  static constexpr std::size_t kParts = 16, kVectors = kParts * sizeof(T) / kVectorBytes;
  Vector<T> parts_[kVectors] = {};
  std::size_t at_ = 0;
};

// The largest element; NaN when there is one. REQUIRES: n >= 1.
template <class T>
T row_max(const T* x, std::int64_t n) {
  Vector<T> most = splat<Packet<T>>(x[0]).low, other = most;
  auto odd = most != most;
  each_packet(n, x, x[0], [&](Packet<T> v) {
    odd |= (v.low != v.low) | (v.high != v.high);
    most = larger(most, v.low);
    other = larger(other, v.high);
  });
  if (any_lane(Packet<std::remove_cvref_t<decltype(odd[0])>>{odd, odd}))
    return *std::find_if(x, x + n, [](T v) { return v != v; });
  most = larger(most, other);
  T part[kVectorBytes / sizeof(T)];
  std::memcpy(part, &most, sizeof(part));
  for (std::size_t width = std::size(part) / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) part[j] = std::max(part[j], part[j + width]);
  return part[0];
}

}  // namespace troupe
