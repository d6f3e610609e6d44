// Huber's loss of a difference.
#pragma once

#include <cmath>

namespace troupe::formula {

struct Huber {
  template <class T>
  constexpr T operator()(T a, T b, T delta) const {
    const T difference = a - b, size = std::abs(difference);
    const T near = difference * T(0.5) * difference, far = (size - delta * T(0.5)) * delta;
    return size <= delta ? near : far;
  }
};

}  // namespace troupe::formula
