// The product of two matrices in tiles of block memory. Sums go from k = 0 on, in order.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"

namespace troupe::device {

// A block of 256 threads for each tile of y, of which each thread has 4 x 4 elements in registers:
// it reads 8 numbers of block memory for 16 products.
template <class T>
struct MatMul {
  using Args = MatMulArgs;
  using S = Compute<T>;
  static constexpr int kTile = kMatMulTile, kDepth = 16, kEach = 4, kAcross = kTile / kEach;
  using Tile = S[kDepth][kTile + kEach];

  // Elements [k, k + kDepth) of rows [first, first + kTile) of a matrix, 0 outside of it. Threads
  // that follow each other read along the dimension whose elements do.
  __device__ static void fetch(const void* from, std::int64_t row, std::int64_t column,
                               std::int64_t first, std::int64_t rows, std::int64_t k,
                               std::int64_t depth, Tile& to) {
    const T* x = static_cast<const T*>(from);
    for (int e = int(threadIdx.x); e < kTile * kDepth; e += int(blockDim.x)) {
      const int r = column == 1 ? e / kDepth : e % kTile;
      const int c = column == 1 ? e % kDepth : e / kTile;
      const bool inside = first + r < rows && k + c < depth;
      to[c][r] = inside ? S(load(x[(first + r) * row + (k + c) * column])) : S(0);
    }
  }

  __device__ static void run(const Args& m) {
    auto& a = block_shared<Tile, 0>();
    auto& b = block_shared<Tile, 1>();
    const int row = int(threadIdx.x) / kAcross * kEach, column = int(threadIdx.x) % kAcross * kEach;
    const std::int64_t across = (m.n + kTile - 1) / kTile, down = (m.m + kTile - 1) / kTile;
    for (std::int64_t tile = blockIdx.x; tile < across * down; tile += gridDim.x) {
      const std::int64_t top = tile / across * kTile, left = tile % across * kTile;
      S sums[kEach][kEach] = {};
      for (std::int64_t k = 0; k < m.k; k += kDepth) {
        fetch(m.a, m.a_row, m.a_column, top, m.m, k, m.k, a);
        fetch(m.b, m.b_column, m.b_row, left, m.n, k, m.k, b);
        __syncthreads();
        const int most = m.k - k < kDepth ? int(m.k - k) : kDepth;
        for (int l = 0; l < most; ++l)
          for (int i = 0; i < kEach; ++i)
            for (int j = 0; j < kEach; ++j) sums[i][j] += a[l][row + i] * b[l][column + j];
        __syncthreads();
      }
      T* y = static_cast<T*>(m.y);
      for (int i = 0; i < kEach && top + row + i < m.m; ++i)
        for (int j = 0; j < kEach && left + column + j < m.n; ++j)
          y[(top + row + i) * m.n + left + column + j] = Store<T>::of(sums[i][j]);
    }
  }
};

}  // namespace troupe::device
