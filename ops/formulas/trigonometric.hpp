// Trigonometric and hyperbolic functions of the C library.
#pragma once

#include <cmath>

namespace troupe::formula {

struct Tan {
  template <class T>
  constexpr T operator()(T x) const {
    return std::tan(x);
  }
};
struct Asin {
  template <class T>
  constexpr T operator()(T x) const {
    return std::asin(x);
  }
};
struct Acos {
  template <class T>
  constexpr T operator()(T x) const {
    return std::acos(x);
  }
};
struct Atan {
  template <class T>
  constexpr T operator()(T x) const {
    return std::atan(x);
  }
};
struct Sinh {
  template <class T>
  constexpr T operator()(T x) const {
    return std::sinh(x);
  }
};
struct Cosh {
  template <class T>
  constexpr T operator()(T x) const {
    return std::cosh(x);
  }
};
struct Asinh {
  template <class T>
  constexpr T operator()(T x) const {
    return std::asinh(x);
  }
};
struct Acosh {
  template <class T>
  constexpr T operator()(T x) const {
    return std::acosh(x);
  }
};
struct Atanh {
  template <class T>
  constexpr T operator()(T x) const {
    return std::atanh(x);
  }
};
struct Atan2 {
  template <class T>
  constexpr T operator()(T y, T x) const {
    return std::atan2(y, x);
  }
};

}  // namespace troupe::formula
