// Relu and its relatives. Gradients read the output y, or x.
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
// Both sides are computed and one is chosen: without a branch, loops vectorise.
struct LeakyRelu {
  template <class T>
  constexpr T operator()(T x, T slope) const {
    const T below = x * slope;
    return x > T(0) ? x : below;
  }
};
struct LeakyReluGrad {
  template <class T>
  constexpr T operator()(T dy, T x, T slope) const {
    const T below = dy * slope;
    return x > T(0) ? dy : below;
  }
};
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluBelow = kSeluScale * 1.6732632423543772848170429916717;
struct Selu {
  template <class T>
  constexpr T operator()(T x) const {
    return x > T(0) ? x * T(kSeluScale) : std::expm1(x) * T(kSeluBelow);
  }
};
struct SeluGrad {
  template <class T>
  constexpr T operator()(T dy, T x) const {
    return x > T(0) ? dy * T(kSeluScale) : dy * (std::exp(x) * T(kSeluBelow));
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
