// Inverse trigonometric and hyperbolic functions of floats, each within 1 ulp, computed by packets
// in double. Those of doubles are the C library's.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/kernels/support/vector_math.hpp"

namespace troupe {

TROUPE_INLINE double square_root(double x) { return std::sqrt(x); }
TROUPE_INLINE Packet<double> square_root(Packet<double> x) {
  return lane_by_lane(x, [](double value) { return std::sqrt(value); });
}

// e^x and, of positive normal numbers, log x, as exact as a float asks for.
template <class D>
TROUPE_INLINE D short_exp(D x) {
  return exp_normal<ShortConstants>(exp_clamped<ShortConstants>(x));
}
template <class D>
TROUPE_INLINE D short_log(D x) {
  const auto [exponent, f] = log_parts(x);
  return log_of_parts<ShortConstants>(exponent, f, D{});
}

inline constexpr double kPi = std::numbers::pi;

// The angle in [0, pi/2] whose tangent is t >= 0: that of a t up to tan(pi / 8), from 0, pi/4 or
// pi/2 on.
template <class D>
TROUPE_INLINE D angle_of(D t) {
  constexpr double kAtan[] = {-0.333333333314407311, 0.199999989172885815,   -0.142856125113870164,
                              0.111074951357144731,  -0.0902898350035046205, 0.0713532512233067825,
                              -0.0404322482588716118};
  const D one = splat<D>(1);
  const auto far = t > splat<D>(2.41421356237309505), middle = t > splat<D>(0.41421356237309505);
  const D u = choose(far, -one / t, choose(middle, (t - one) / (t + one), t));
  const D base = choose(far, splat<D>(kPi / 2), choose(middle, splat<D>(kPi / 4), D{}));
  const D square = u * u;
  return base + multiply_add(u * square, polynomial(square, kAtan), u);
}
template <class V>
TROUPE_INLINE V atan_value(V x) {
  return in_double([](auto x) { return with_sign(angle_of(magnitude(x)), x); }, x);
}
template <class V>
TROUPE_INLINE V atan2_value(V y, V x) {
  auto wide = []<class D>(D y, D x) {
    const D a = magnitude(x), b = magnitude(y);
    const D t = choose(b == D{}, D{}, choose(a == b, splat<D>(1), b / a));  // of 0, 0 and inf, inf
    const D q = angle_of(t);
    const D angle = choose((to_bits(x) >> 63) == 0, q, splat<D>(kPi) - q);
    return choose(a == a, with_sign(angle, y), a);
  };
  return in_double(wide, y, x);
}

// asin of `size` up to 1/2, and of larger ones that of the root of (1 - size) / 2.
template <class D>
struct HalfAngle {
  D angle;
  decltype(D{} > D{}) large;
};
template <class D>
TROUPE_INLINE HalfAngle<D> half_angle(D size) {
  constexpr double kAsin[] = {0.16666666666662181,   0.075000000035845581,  0.0446428524379387159,
                              0.0303821827762124848, 0.0223660659388850076, 0.0174414956854928556,
                              0.0131879161367537301, 0.0156756625270709354, -0.00293979290672419638,
                              0.0279070314326660997};
  const auto large = size > splat<D>(0.5);
  const D square = choose(large, (splat<D>(1) - size) * 0.5, size * size);
  const D sine = choose(large, square_root(square), size);  // NaN beyond 1
  return {multiply_add(sine * square, polynomial(square, kAsin), sine), large};
}
template <class V>
TROUPE_INLINE V asin_value(V x) {
  auto wide = []<class D>(D x) {
    const auto [angle, large] = half_angle(magnitude(x));
    return with_sign(choose(large, splat<D>(kPi / 2) - angle * 2.0, angle), x);
  };
  return in_double(wide, x);
}
template <class V>
TROUPE_INLINE V acos_value(V x) {
  auto wide = []<class D>(D x) {
    const auto [angle, large] = half_angle(magnitude(x));
    const D twice = angle * 2.0;
    return choose(large, choose(x > D{}, twice, splat<D>(kPi) - twice),
                  splat<D>(kPi / 2) - with_sign(angle, x));
  };
  return in_double(wide, x);
}

// Few arguments are so large that the C library computes them.
inline float tan_value(float x) {
  if (!(std::abs(x) <= kTurned<double>)) return float(std::tan(double(x)));
  return float(sine_near<0>(double(x)) / sine_near<1>(double(x)));
}
__attribute__((noinline)) inline Packet<float> tan_farther(Packet<float> x, Packet<float> y) {
  float from[kPacketWidth<float>], to[kPacketWidth<float>];
  store_packet(from, x);
  store_packet(to, y);
  for (std::int64_t i = 0; i < kPacketWidth<float>; ++i)
    if (!(std::abs(from[i]) <= kTurned<double>)) to[i] = tan_value(from[i]);
  return load_packet(to);
}
TROUPE_INLINE Packet<float> tan_value(Packet<float> x) {
  const Packet<float> y =
      in_double([](Packet<double> x) { return sine_near<0>(x) / sine_near<1>(x); }, x);
  if (!any_lane(~(magnitude(x) <= splat<Packet<float>>(kTurned<double>)))) return y;
  return tan_farther(x, y);
}

// --- hyperbolic: near 0 the first terms of the series, where the formulas would lose digits ---

template <class V>
TROUPE_INLINE V sinh_value(V x) {
  constexpr double kSeries[] = {1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880};
  auto wide = [&kSeries]<class D>(D x) {
    const D size = magnitude(x), square = size * size, e = short_exp(size);
    const D near = multiply_add(size * square, polynomial(square, kSeries), size);
    const D far = (e - splat<D>(1) / e) * 0.5;
    return with_sign(choose(size < splat<D>(0.25), near, far), x);
  };
  return in_double(wide, x);
}
template <class V>
TROUPE_INLINE V cosh_value(V x) {
  auto wide = []<class D>(D x) {
    const D e = short_exp(magnitude(x));
    return (e + splat<D>(1) / e) * 0.5;
  };
  return in_double(wide, x);
}
template <class V>
TROUPE_INLINE V asinh_value(V x) {
  constexpr double kSeries[] = {-1.0 / 6, 3.0 / 40, -15.0 / 336, 105.0 / 3456};
  auto wide = [&kSeries]<class D>(D x) {
    const D size = magnitude(x), square = size * size, one = splat<D>(1);
    const D near = multiply_add(size * square, polynomial(square, kSeries), size);
    const D far = short_log(size + square_root(square + one));
    const D y = choose(size < splat<D>(0.1), near, far);
    return with_sign(choose(size < splat<D>(std::numeric_limits<double>::infinity()), y, size), x);
  };
  return in_double(wide, x);
}
template <class V>
TROUPE_INLINE V acosh_value(V x) {
  auto wide = []<class D>(D x) {
    using Limits = std::numeric_limits<double>;
    const D one = splat<D>(1), y = short_log(x + square_root((x - one) * (x + one)));
    return choose(x < one, splat<D>(Limits::quiet_NaN()),
                  choose(x < splat<D>(Limits::infinity()), y, x));
  };
  return in_double(wide, x);
}
template <class V>
TROUPE_INLINE V atanh_value(V x) {
  constexpr double kSeries[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9};
  auto wide = [&kSeries]<class D>(D x) {
    using Limits = std::numeric_limits<double>;
    const D size = magnitude(x), square = size * size, one = splat<D>(1);
    const D near = multiply_add(size * square, polynomial(square, kSeries), size);
    const D far = short_log((one + size) / (one - size)) * 0.5;
    const D ends = choose(size == one, splat<D>(Limits::infinity()), splat<D>(Limits::quiet_NaN()));
    return with_sign(choose(size < one, choose(size < splat<D>(0.1), near, far), ends), x);
  };
  return in_double(wide, x);
}

}  // namespace troupe
