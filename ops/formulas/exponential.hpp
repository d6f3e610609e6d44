// Exp, Log, Tanh and Sigmoid as the C library has them, and the gradients.
#pragma once

#include <cmath>

namespace troupe::formula {

struct Exp {
  template <class T>
  constexpr T operator()(T x) const {
    return std::exp(x);
  }
};
struct Log {
  template <class T>
  constexpr T operator()(T x) const {
    return std::log(x);
  }
};
struct Tanh {
  template <class T>
  constexpr T operator()(T x) const {
    return std::tanh(x);
  }
};
struct TanhGrad {
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return dy * ((1 - y) * (1 + y));  // near 1, 1 - y * y would lose digits
  }
};
struct Sigmoid {
  template <class T>
  constexpr T operator()(T x) const {
    const T e = std::exp(-std::abs(x));  // e^-x may be infinite where the result is not 0
    return (x < 0 ? e : T(1)) / (1 + e);
  }
};
struct SigmoidGrad {
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return dy * (y * (1 - y));
  }
};

}  // namespace troupe::formula
