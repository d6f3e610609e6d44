// The product of two matrices in tiles of block memory. Sums go from k = 0 on, in order.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"

namespace troupe::device {

// A block of 16 x 16 threads for each tile of y, in one dimension of 256.
template <class T>
struct MatMul {
  using Args = MatMulArgs;
  using S = Compute<T>;
  static constexpr int kTile = 16;

  __device__ static void run(const Args& m) {
    auto& a = block_shared<S[kTile][kTile + 1], 0>();
    auto& b = block_shared<S[kTile][kTile + 1], 1>();
    const int row = int(threadIdx.x) / kTile, column = int(threadIdx.x) % kTile;
    const std::int64_t across = (m.n + kTile - 1) / kTile, down = (m.m + kTile - 1) / kTile;
    for (std::int64_t tile = blockIdx.x; tile < across * down; tile += gridDim.x) {
      const std::int64_t i = tile / across * kTile + row, j = tile % across * kTile + column;
      S sum = S(0);
      for (std::int64_t k = 0; k < m.k; k += kTile) {
        const bool in_a = i < m.m && k + column < m.k, in_b = k + row < m.k && j < m.n;
        a[row][column] =
            in_a ? S(load(static_cast<const T*>(m.a)[i * m.a_row + (k + column) * m.a_column]))
                 : S(0);
        b[row][column] =
            in_b ? S(load(static_cast<const T*>(m.b)[(k + row) * m.b_row + j * m.b_column])) : S(0);
        __syncthreads();
        const int most = m.k - k < kTile ? int(m.k - k) : kTile;
        for (int l = 0; l < most; ++l) sum += a[row][l] * b[l][column];
        __syncthreads();
      }
      if (i < m.m && j < m.n) static_cast<T*>(m.y)[i * m.n + j] = Store<T>::of(sum);
    }
  }
};

}  // namespace troupe::device
