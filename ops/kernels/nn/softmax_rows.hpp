// The softmax of one row: shared by Softmax and the cross entropies.
#pragma once

#include "ops/kernels/support/vector_math.hpp"

namespace troupe {

// sum of e^(x - max)
template <class T>
T exp_sum(const T* x, T max, std::int64_t n) {
  return row_sum<T>(n, [&](std::int64_t j) { return exp_value(x[j] - max); });
}

// y = e^(x - max) / sum; y may be x. Returns log(sum) + max, the logarithm of the whole sum.
// REQUIRES: n >= 1.
template <class T>
T softmax_row(const T* x, std::int64_t n, T* y) {
  const T max = row_max(x, n);
  map_packets<T>(n, {x}, {1}, {y}, [=](auto at, auto to) { to(0, exp_value(at(0) - max)); });
  const T sum = row_sum<T>(n, [&](std::int64_t j) { return y[j]; });
  const T scale = T(1) / sum;
  for (std::int64_t j = 0; j < n; ++j) y[j] *= scale;
  return std::log(sum) + max;
}

}  // namespace troupe
