// Relu and its relatives. Gradients read the output y.
#pragma once

#include <cmath>

namespace troupe::formula {

struct Relu {  // NaN stays NaN: a comparison that fails keeps x
  template <class T>
  constexpr T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct ReluGrad {
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return y > T(0) ? dy : T(0);
  }
};
struct Relu6 {
  template <class T>
  constexpr T operator()(T x) const {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
  }
};
struct Relu6Grad {
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return y > T(0) && y < T(6) ? dy : T(0);
  }
};
struct Elu {
  template <class T>
  constexpr T operator()(T x) const {
    return x < T(0) ? std::expm1(x) : x;
  }
};
struct EluGrad {  // e^x = y + 1 where x < 0
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return y < T(0) ? dy * (y + T(1)) : dy;
  }
};
struct Softplus {  // neither overflows nor loses the small values
  template <class T>
  constexpr T operator()(T x) const {
    return (x < T(0) ? T(0) : x) + std::log1p(std::exp(-std::abs(x)));
  }
};
struct SoftplusGrad {  // e^x = e^y - 1, so the slope 1 / (1 + e^-x) is 1 - e^-y
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return dy * -std::expm1(-y);
  }
};

}  // namespace troupe::formula
