// Gelu and its gradient, exact or by tanh.
#pragma once

#include <cmath>

namespace troupe::formula {

// The part of normally distributed numbers below x. What the product with sqrt(1/2) loses would
// show in e^(-x^2 / 2), so it is made good by the slope there.
inline double normal_below(double x) {
  constexpr double kHigh = -0.70710678118654757, kLow = 4.8336466567264573e-17;
  const double t = x * kHigh, lost = std::fma(x, kHigh, -t) + x * kLow;
  const double slope = 1.1283791670955126 * std::exp(-t * t);  // 2 / sqrt(pi) e^-t^2
  return 0.5 * (std::erfc(t) - (slope == 0 ? 0 : lost * slope));
}

// The same of floats, within 4 ulp: s P(s) e^(-x^2 / 2) below 0, where s = 1 / (1 + 0.43 |x|). The
// largest error of P is 5e-8 of it.
struct NormalTail {
  static constexpr float kOfSize = 0.43f, kMost = 15;  // e^(-15^2 / 2) rounds to 0
  static constexpr float kTail[] = {
      0x1.5f58f2p-3f,  0x1.5ebea4p-3f,  0x1.245cc4p-3f, 0x1.f0093ap-5f,  0x1.711b42p-5f,
      -0x1.daaa7ap-4f, -0x1.93e842p-4f, 0x1.e686c6p-3f, -0x1.2a018ap-3f, 0x1.001ab8p-5f};
};
struct FloatNormal {
  float below, bell;
  static FloatNormal at(float x) {
    using N = NormalTail;
    const float size = std::abs(x), within = size > N::kMost ? N::kMost : size;
    const float square = within * within, lost = std::fma(within, within, -square);
    const float rounded = std::exp(square * -0.5f), bell = std::fma(rounded, lost * -0.5f, rounded);
    const float s = 1 / std::fma(within, N::kOfSize, 1.0f);
    float sum = N::kTail[9];
    for (int i = 8; i >= 0; --i) sum = std::fma(sum, s, N::kTail[i]);
    const float tail = bell * (s * sum);
    return {x < 0 ? tail : 1 - tail, bell};
  }
};

struct Gelu {
  double operator()(double x) const { return x * normal_below(x); }
  float operator()(float x) const { return x * FloatNormal::at(x).below; }
};
struct GeluGrad {
  // Beside the second term the digits that normal_below saves do not count.
  double operator()(double dy, double x) const {
    const double below = 0.5 * std::erfc(x * -0.70710678118654757);
    return dy * (below + x * (0.39894228040143268 * std::exp(-0.5 * x * x)));
  }
  float operator()(float dy, float x) const {
    const FloatNormal normal = FloatNormal::at(x);
    return dy * std::fma(x, normal.bell * 0.398942280f, normal.below);
  }
};

// x (1 + tanh z) / 2, which is x / (1 + e^-2z), of z = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr double kOfX = 1.5957691216057308, kOfCube = 0.044715 * kOfX;  // 2 z

  template <class T>
  constexpr T operator()(T x) const {
    return x / (1 + std::exp(-x * (T(kOfX) + T(kOfCube) * x * x)));
  }
};
// dy (s + x s (1 - s) (2 z)'), of s = 1 / (1 + e^-2z). Beyond 50 it is dy or 0.
struct GeluTanhGrad {
  template <class T>
  constexpr T operator()(T dy, T x) const {
    const T within = x > 50 ? T(50) : x < -50 ? T(-50) : x, square = within * within;
    const T twice = within * (T(GeluTanh::kOfX) + T(GeluTanh::kOfCube) * square);
    const T e = std::exp(-std::abs(twice)), one = 1 / (1 + e);
    const T slope = T(GeluTanh::kOfX) + T(3 * GeluTanh::kOfCube) * square;
    return dy * ((twice < 0 ? e * one : one) + within * (e * one * one * slope));
  }
};

}  // namespace troupe::formula
