// Arithmetic of two elements.
#pragma once

#include <cmath>

#include "ops/formulas/integers.hpp"

namespace troupe::formula {

struct Add {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Sub {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct Mul {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct SquaredDifference {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return (x - y) * (x - y); });
  }
};
struct ScaleRow {  // what is scaled by 0 is 0, even where it is infinite or NaN
  template <class T>
  constexpr T operator()(T x, T scale) const {
    const T y = x * scale;
    return scale == T(0) && y != y ? T(0) : y;
  }
};
struct Maximum {  // NaN wins
  template <class T>
  constexpr T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct Div {
  template <class T>
  constexpr T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return b == T(-1) && std::is_signed_v<T> ? wrapping_neg(a) : T(a / b);
    else
      return a / b;
  }
};
struct FloorDiv {
  template <class T>
  constexpr T operator()(T a, T b) const {
    if constexpr (!std::is_integral_v<T>) {
      // a / b may have been rounded up to an integer: q b is beyond a then, by what fma knows. A
      // negative quotient may have become -0, as that by an infinity does.
      const T q = std::floor(a / b), past = std::fma(q, b, -a);
      const bool to_zero = q == 0 && a != 0 && (a < 0) != (b < 0);
      return to_zero || (b > 0 ? past > 0 : past < 0) ? q - 1 : q;
    } else {
      T q = Div{}(a, b);
      bool below = std::is_signed_v<T> && b != T(-1) && a % b != 0 && (a < 0) != (b < 0);
      return below ? T(q - 1) : q;
    }
  }
};
// a - b * floor(a / b): the sign of b.
struct Mod {
  template <class T>
  constexpr T operator()(T a, T b) const {
    if constexpr (!std::is_integral_v<T>) {
      T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else {
      if (std::is_signed_v<T> && b == T(-1)) return 0;
      T r = T(a % b);
      return std::is_signed_v<T> && r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
    }
  }
};
// Of floats; CPUs have a version of their own, and one for integers.
struct Pow {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return std::pow(a, b);
  }
};
// d pow(a, b) / db = y log a, and 0 where a <= 0: there log would give NaN or 0 * inf.
struct PowGradExponent {
  template <class T>
  constexpr T operator()(T dy, T y, T a) const {
    return a > 0 ? dy * y * std::log(a) : T(0);
  }
};
// d pow(a, b) / da = b pow(a, b - 1), and 0 where b is 0: there pow(0, -1) would give 0 * inf.
struct PowGradBase {
  template <class T>
  constexpr T operator()(T dy, T a, T b) const {
    return b == 0 ? T(0) : dy * b * std::pow(a, b - 1);
  }
};

}  // namespace troupe::formula
