// The step that proximal updates share.
#pragma once

#include <cmath>

namespace troupe {

// The x that minimises rate * (l1 |x| + l2 / 2 x^2) + (x - p)^2 / 2: p, moved towards 0 (Duchi and
// Singer, 2009, section 5).
template <class T>
T proximal(T p, T rate, T l1, T l2) {
  const T left = std::abs(p) - rate * l1;
  const T size = left > 0 ? left : left <= 0 ? T(0) : left;  // NaN stays NaN
  return std::copysign(size, p) / (1 + rate * l2);
}

}  // namespace troupe
