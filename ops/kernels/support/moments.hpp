// The mean and the variance of a row, and lengths, of values whose squares overflow or vanish
// though they do not: those of the values times a power of two.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernels/support/vector_math.hpp"

namespace troupe {

// A power of two by which values up to `most` have squares that are normal numbers. REQUIRES: most
// is positive and finite.
template <class T>
T scale_of_squares(T most) {
  constexpr int kMost = std::numeric_limits<T>::max_exponent - 2;  // the largest has no reciprocal
  return std::ldexp(T(1), -std::clamp(std::ilogb(most), -kMost, kMost));
}

// The largest size of n values, or the first that is inf or NaN.
template <class T>
T largest_size(const T* x, std::int64_t n) {
  T most = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const T size = std::abs(x[j]);
    if (!(size <= std::numeric_limits<T>::max())) return size;
    most = std::max(most, size);
  }
  return most;
}

// Parts of the sums over a row: more of them wait less for one another.
inline constexpr int kMomentParts = 32;

// How a row is normalised: (x * by - mean) * inverse. `by` is 1 unless squares of the row overflow,
// though its values do not; mean and variance are those of x * by.
template <class T>
struct Moments {
  T by = 1, mean, variance, inverse;

  T normal(T x) const { return (x * by - mean) * inverse; }
  T inv_std() const { return inverse * by; }
};

// REQUIRES: n >= 1.
template <class T>
Moments<T> measure(const T* x, std::int64_t n, T epsilon, T by = 1) {
  const T count = T(n);
  T mean = row_sum<T, kMomentParts>(n, [&](std::int64_t j) { return x[j] * by; }) / count;
  // What the first mean misses, since its sum was rounded, is the mean of what is apart from it.
  const auto [missed, squares] =
      two_row_sums<T, kMomentParts>(n, [&](std::int64_t j, T& apart, T& square) {
        apart = x[j] * by - mean;
        square = apart * apart;
      });
  mean += missed / count;
  const T variance = std::max((squares - missed * (missed / count)) / count, T(0));
  if (by == T(1) && !std::isfinite(squares)) {
    const T most = largest_size(x, n);
    if (!std::isfinite(most)) return {1, most, most - most, most - most};  // NaN
    return measure(x, n, epsilon, scale_of_squares(most));
  }
  return {by, mean, variance, T(1) / std::sqrt(variance + epsilon * by * by)};
}

}  // namespace troupe
