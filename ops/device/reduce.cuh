// Reductions in fixed trees: the same bits in every run.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"

namespace troupe::device {

template <class Op, class S>
__device__ inline S finished(S sum, std::int64_t n) {
  if constexpr (requires { Op::finish(sum, n); })
    return Op::finish(sum, n);
  else
    return sum;
}

// Element `at` of y.
template <class Op, class T>
__device__ inline void put(const ReduceArgs& a, std::int64_t at, Compute<T> sum) {
  if (a.unfinished)
    static_cast<Compute<T>*>(a.y)[at] = sum;
  else
    static_cast<T*>(a.y)[at] = Store<T>::of(finished<Op>(sum, a.of));
}

// y[row] = op of x[row, 0 .. n). A block for each part of a row. X is T, or what T is computed in.
template <class Op, class T, class X = T>
struct ReduceRows {
  using Args = ReduceArgs;
  using S = Compute<T>;
  __device__ static void run(const Args& a) {
    const std::int64_t parts = a.parts.count;
    for (std::int64_t at = blockIdx.x; at < a.outer * parts; at += gridDim.x) {
      const PartOf part = PartOf::of(a.parts, at % parts, a.n);
      const X* x = static_cast<const X*>(a.x) + at / parts * a.n;
      S sum = Op::template start<S>();
#pragma unroll 4  // so many loads are on their way at a time
      for (std::int64_t i = part.begin + threadIdx.x; i < part.end; i += blockDim.x)
        sum = Op{}(sum, load(x[i]));
      sum = block_all<Op>(sum);
      if (threadIdx.x == 0) put<Op, T>(a, at, sum);
    }
  }
};

// y[outer, inner] = op of x[outer, 0 .. n, inner]. A block for a part of each 32 columns: its warps
// take rows by turns, and the first of them joins what they have. X as above.
template <class Op, class T, class X = T>
struct ReduceColumns {
  using Args = ReduceArgs;
  using S = Compute<T>;
  __device__ static void run(const Args& a) {
    auto& of_warps = block_shared<S[32][33]>();
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int warps = int(blockDim.x) / 32;
    const std::int64_t strips = (a.inner + 31) / 32, parts = a.parts.count;
    for (std::int64_t block = blockIdx.x; block < a.outer * parts * strips; block += gridDim.x) {
      const std::int64_t at = block / strips, column = block % strips * 32 + lane;
      const PartOf part = PartOf::of(a.parts, at % parts, a.n);
      const X* x = static_cast<const X*>(a.x) + at / parts * a.n * a.inner + column;
      S sum = Op::template start<S>();
      if (column < a.inner) {
#pragma unroll 4  // so many loads are on their way at a time
        for (std::int64_t row = part.begin + warp; row < part.end; row += warps)
          sum = Op{}(sum, load(x[row * a.inner]));
      }
      of_warps[warp][lane] = sum;
      __syncthreads();
      for (int half = warps / 2; half > 0; half /= 2) {
        if (warp < half)
          of_warps[warp][lane] = Op{}(of_warps[warp][lane], of_warps[warp + half][lane]);
        __syncthreads();
      }
      if (warp == 0 && column < a.inner) put<Op, T>(a, at * a.inner + column, of_warps[0][lane]);
      __syncthreads();  // before they are written again
    }
  }
};

// The same where n is small: a thread for each output. X as above.
template <class Op, class T, class X = T>
struct ReduceFew {
  using Args = ReduceArgs;
  using S = Compute<T>;
  __device__ static void run(const Args& a) {
    for (std::int64_t at = first_element(); at < a.outer * a.inner; at += element_step()) {
      const X* x = static_cast<const X*>(a.x) + at / a.inner * a.n * a.inner + at % a.inner;
      S sum = Op::template start<S>();
#pragma unroll 4  // so many loads are on their way at a time
      for (std::int64_t i = 0; i < a.n; ++i) sum = Op{}(sum, load(x[i * a.inner]));
      put<Op, T>(a, at, sum);
    }
  }
};

}  // namespace troupe::device
