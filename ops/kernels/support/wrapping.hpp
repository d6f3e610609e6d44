// Sums and differences of integers that wrap around, as those of Add and Sub do.
#pragma once

#include <type_traits>

namespace troupe {

template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return T(U(U(a) + U(b)));
  } else {
    return T(a + b);
  }
}
template <class T>
T wrapping_difference(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return T(U(U(a) - U(b)));
  } else {
    return T(a - b);
  }
}

}  // namespace troupe
