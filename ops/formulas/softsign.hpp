// Softsign and its gradient.
#pragma once

#include <cmath>
#include <limits>

namespace troupe::formula {

struct Softsign {
  template <class T>
  constexpr T operator()(T x) const {
    const T d = 1 + std::abs(x);
    return d > std::numeric_limits<T>::max() ? std::copysign(T(1), x) : x / d;
  }
};

struct SoftsignGrad {
  template <class T>
  constexpr T operator()(T dy, T x) const {
    const T d = 1 + std::abs(x);
    return dy / d / d;  // d * d may overflow
  }
};

}  // namespace troupe::formula
