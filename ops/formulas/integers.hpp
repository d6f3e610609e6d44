// What formulas of integers share: they wrap around instead of overflowing.
//
// The files of this folder are compiled by g++ for CPUs, by NVRTC for GPUs, and by g++ again for
// the emulated GPU of the tests: one text, so one meaning. They include headers of the standard
// library that ops/device/standard.cuh stands in for where there is none, and nothing that
// allocates, throws or keeps state.
#pragma once

#include <cstdint>
#include <type_traits>

namespace troupe::formula {

// Signed overflow is undefined, unsigned is not.
template <class T>
constexpr T wrapping_neg(T x) {
  if constexpr (std::is_integral_v<T>)
    return T(-static_cast<std::make_unsigned_t<T>>(x));
  else
    return -x;
}
template <class T, class F>
constexpr T wrapping(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>)
    return T(f(std::uint64_t(a), std::uint64_t(b)));
  else
    return f(a, b);
}

}  // namespace troupe::formula
