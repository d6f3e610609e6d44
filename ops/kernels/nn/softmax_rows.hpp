// The softmax of one row: shared by Softmax and the cross entropies.
#pragma once

#include "ops/kernels/support/vector_math.hpp"

namespace troupe {

// sum of e^(x - max)
template <class T>
T exp_sum(const T* x, T max, std::int64_t n) {
  RowSum<T> sum;
  each_packet(n, x, -std::numeric_limits<T>::infinity(),
              [&](Packet<T> v) { sum.add(exp_value(v - max)); });
  return sum.sum();
}

// Of a row: the logarithm of the sum of e^x is log_sum + max. A loss takes max from its logit
// before it adds: the sum of the two has not the digits of log_sum if max is large.
template <class T>
struct RowOfSoftmax {
  T max, log_sum;
};

// y = e^(x - max) / sum; y may be x. REQUIRES: n >= 1.
template <class T>
RowOfSoftmax<T> softmax_row(const T* x, std::int64_t n, T* y) {
  const T max = row_max(x, n);
  RowSum<T> sum_of;
  const auto function = [&](auto at, auto to) {
    const Packet<T> e = exp_value(at(0) - max);
    sum_of.add(e);
    to(0, e);
  };
  map_packets<T>(n, {x}, {1}, {y}, function, -std::numeric_limits<T>::infinity());
  const T sum = sum_of.sum(), scale = T(1) / sum;
  for (std::int64_t j = 0; j < n; ++j) y[j] *= scale;
  return {max, std::log(sum)};
}

}  // namespace troupe
