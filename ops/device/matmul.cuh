// Products of matrices.
#pragma once

#include "ops/device/tiles.cuh"

namespace troupe::device {

template <class T>
struct MatMul {
  using Args = MatMulArgs;
  __device__ static void run(const Args& m) {
    const T *a = static_cast<const T*>(m.a), *b = static_cast<const T*>(m.b);
    // Which matrix of an input belongs to product p.
    const auto number = [&](int input, std::int64_t p) {
      std::int64_t at = 0;
#pragma unroll 1  // a division is long: copies of it only take time to compile
      for (int d = m.walk.rank - 1; d >= 0; --d) {
        at += p % m.walk.dims[d] * m.walk.strides[input][d];
        p /= m.walk.dims[d];
      }
      return at;
    };
    Tiles<Compute<T>>::run(
        m.count, m.m, m.n, m.k, m.a_column == 1, m.b_row == 1,
        [&](std::int64_t p, std::int64_t i, std::int64_t k) {
          return load(a[number(0, p) * m.m * m.k + i * m.a_row + k * m.a_column]);
        },
        [&](std::int64_t p, std::int64_t j, std::int64_t k) {
          return load(b[number(1, p) * m.k * m.n + k * m.b_row + j * m.b_column]);
        },
        [&](std::int64_t p, std::int64_t i, std::int64_t j, Compute<T> sum) {
          static_cast<T*>(m.y)[(p * m.m + i) * m.n + j] = Store<T>::of(sum);
        });
  }
};

}  // namespace troupe::device
