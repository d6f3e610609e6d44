// Products of matrices in tiles of block memory. Sums go from k = 0 on, in order.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"

namespace troupe::device {

// A block of 256 threads for each tile of a product, of which each thread has 4 x 4 elements in
// registers: it reads 8 numbers of block memory for 16 products.
template <class S>
struct Tiles {
  static constexpr int kTile = kMatMulTile, kDepth = 32, kEach = 4, kAcross = kTile / kEach;
  using Tile = S[kDepth][kTile + kEach];

  // Elements [k, k + kDepth) of rows [first, first + kTile), 0 outside. Threads that follow each
  // other take the next k, or the next row.
  template <class At>
  __device__ static void fetch(bool along_k, std::int64_t first, std::int64_t rows, std::int64_t k,
                               std::int64_t depth, Tile& to, At at) {
    for (int e = int(threadIdx.x); e < kTile * kDepth; e += int(blockDim.x)) {
      const int r = along_k ? e / kDepth : e % kTile;
      const int c = along_k ? e % kDepth : e / kTile;
      const bool inside = first + r < rows && k + c < depth;
      to[c][r] = inside ? at(first + r, k + c) : S(0);
    }
  }

  // store(p, i, j, sum over k of a(p, i, k) b(p, j, k)) for each of `count` products of [m, n]. The
  // flags say along what neighbours of a and b are next to each other in memory.
  template <class A, class B, class To>
  __device__ static void run(std::int64_t count, std::int64_t m, std::int64_t n, std::int64_t depth,
                             bool a_along_k, bool b_along_k, A a, B b, To store) {
    auto& left = block_shared<Tile, 0>();
    auto& right = block_shared<Tile, 1>();
    const int row = int(threadIdx.x) / kAcross * kEach, column = int(threadIdx.x) % kAcross * kEach;
    const std::int64_t across = (n + kTile - 1) / kTile, down = (m + kTile - 1) / kTile;
    for (std::int64_t tile = blockIdx.x; tile < count * across * down; tile += gridDim.x) {
      const std::int64_t p = tile / (across * down), in_product = tile % (across * down);
      const std::int64_t top = in_product / across * kTile, first = in_product % across * kTile;
      // Of a product that is narrower than a tile most threads have nothing to add up.
      const bool any = top + row < m && first + column < n;
      S sums[kEach][kEach] = {};
      for (std::int64_t k = 0; k < depth; k += kDepth) {
        fetch(a_along_k, top, m, k, depth, left,
              [&](std::int64_t i, std::int64_t l) { return S(a(p, i, l)); });
        fetch(b_along_k, first, n, k, depth, right,
              [&](std::int64_t j, std::int64_t l) { return S(b(p, j, l)); });
        __syncthreads();
        const int most = !any ? 0 : depth - k < kDepth ? int(depth - k) : kDepth;
        for (int l = 0; l < most; ++l)
          for (int i = 0; i < kEach; ++i)
            for (int j = 0; j < kEach; ++j) sums[i][j] += left[l][row + i] * right[l][column + j];
        __syncthreads();
      }
      for (int i = 0; i < kEach && top + row + i < m; ++i)
        for (int j = 0; j < kEach && first + column + j < n; ++j)
          store(p, top + row + i, first + column + j, sums[i][j]);
    }
  }
};

}  // namespace troupe::device
