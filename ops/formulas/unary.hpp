// Functions of one element: signs, powers and roots, rounding, tests; and those of the C library,
// for which CPUs have versions of their own (ops/kernels/support/vector_math.hpp).
#pragma once

#include <cmath>

#include "ops/formulas/integers.hpp"

namespace troupe::formula {

struct Abs {
  template <class T>
  constexpr T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x < 0 ? wrapping_neg(x) : x;
    else
      return std::abs(x);
  }
};
struct Neg {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T x) const {
    return wrapping_neg(x);
  }
};
struct Square {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return T(std::uint64_t(x) * std::uint64_t(x));
    else
      return x * x;
  }
};
struct Sign {  // NaN stays NaN
  template <class T>
  constexpr T operator()(T x) const {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
  }
};
struct Reciprocal {
  template <class T>
  constexpr T operator()(T x) const {
    return 1 / x;
  }
};
struct ReciprocalGrad {
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return -dy * y * y;
  }
};
struct Sqrt {
  template <class T>
  constexpr T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct SqrtGrad {
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return dy * T(0.5) / y;
  }
};
struct Rsqrt {
  template <class T>
  constexpr T operator()(T x) const {
    return 1 / std::sqrt(x);
  }
};
struct RsqrtGrad {
  template <class T>
  constexpr T operator()(T dy, T y) const {
    return T(-0.5) * dy * y * y * y;
  }
};

struct Floor {
  template <class T>
  constexpr T operator()(T x) const {
    return std::floor(x);
  }
};
struct Ceil {
  template <class T>
  constexpr T operator()(T x) const {
    return std::ceil(x);
  }
};
struct Round {
  template <class T>
  constexpr T operator()(T x) const {
    return std::rint(x);
  }
};
struct IsNan {
  template <class T>
  constexpr bool operator()(T x) const {
    return std::isnan(x);
  }
};
struct IsInf {
  template <class T>
  constexpr bool operator()(T x) const {
    return std::isinf(x);
  }
};
struct IsFinite {
  template <class T>
  constexpr bool operator()(T x) const {
    return std::isfinite(x);
  }
};
struct LogicalNot {
  constexpr bool operator()(bool x) const { return !x; }
};

struct Log1p {
  template <class T>
  constexpr T operator()(T x) const {
    return std::log1p(x);
  }
};
struct Expm1 {
  template <class T>
  constexpr T operator()(T x) const {
    return std::expm1(x);
  }
};
struct Erf {
  template <class T>
  constexpr T operator()(T x) const {
    return std::erf(x);
  }
};
struct ErfGrad {
  constexpr double operator()(double dy, double x) const {
    const double square = x * x, rest = std::fma(x, x, -square);  // which e^-x^2 would show
    const double e = std::exp(-square);
    return dy * 1.1283791670955126 * (e == 0 ? e : e - e * rest);  // 2 / sqrt(pi)
  }
  constexpr float operator()(float dy, float x) const {
    return float((*this)(double(dy), double(x)));
  }
};
struct Sin {
  template <class T>
  constexpr T operator()(T x) const {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  constexpr T operator()(T x) const {
    return std::cos(x);
  }
};

}  // namespace troupe::formula
