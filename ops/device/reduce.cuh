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

// y[row] = op of x[row, 0 .. n). A block for each row.
template <class Op, class T>
struct ReduceRows {
  using Args = ReduceArgs;
  using S = Compute<T>;
  __device__ static void run(const Args& a) {
    for (std::int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
      const T* x = static_cast<const T*>(a.x) + row * a.n;
      S sum = Op::template start<S>();
      for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) sum = Op{}(sum, load(x[i]));
      sum = block_all<Op>(sum);
      if (threadIdx.x == 0) static_cast<T*>(a.y)[row] = Store<T>::of(finished<Op>(sum, a.n));
    }
  }
};

// y[outer, inner] = op of x[outer, 0 .. n, inner]. A block for each 32 columns: its warps take rows
// by turns, and the first of them joins what they have. X is T, or what T is computed in.
template <class Op, class T, class X = T>
struct ReduceColumns {
  using Args = ReduceArgs;
  using S = Compute<T>;
  __device__ static void run(const Args& a) {
    auto& of_warps = block_shared<S[32][33]>();
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int warps = int(blockDim.x) / 32;
    const std::int64_t strips = (a.inner + 31) / 32;
    for (std::int64_t block = blockIdx.x; block < a.outer * strips; block += gridDim.x) {
      const std::int64_t outer = block / strips, column = block % strips * 32 + lane;
      const X* x = static_cast<const X*>(a.x) + outer * a.n * a.inner + column;
      S sum = Op::template start<S>();
      if (column < a.inner)
        for (std::int64_t row = warp; row < a.n; row += warps)
          sum = Op{}(sum, load(x[row * a.inner]));
      of_warps[warp][lane] = sum;
      __syncthreads();
      for (int half = warps / 2; half > 0; half /= 2) {
        if (warp < half)
          of_warps[warp][lane] = Op{}(of_warps[warp][lane], of_warps[warp + half][lane]);
        __syncthreads();
      }
      if (warp == 0 && column < a.inner)
        static_cast<T*>(a.y)[outer * a.inner + column] =
            Store<T>::of(finished<Op>(of_warps[0][lane], a.n));
      __syncthreads();  // before they are written again
    }
  }
};

// y[o] = op of all x that belong to it, one after the other: for dimensions that are reduced by
// turns with others that are kept. A thread for each output.
template <class Op, class T>
struct ReduceWalk {
  using Args = ReduceWalkArgs;
  using S = Compute<T>;
  __device__ static std::int64_t place(const Walk<1>& walk, std::int64_t o) {
    std::int64_t at = 0;
#pragma unroll 1  // a division is long: copies of it only take time to compile
    for (int d = walk.rank - 1; d >= 0; --d) {
      at += o % walk.dims[d] * walk.strides[0][d];
      o /= walk.dims[d];
    }
    return at;
  }
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.outputs; o += element_step()) {
      const T* x = static_cast<const T*>(a.x) + place(a.kept, o);
      S sum = Op::template start<S>();
      for (std::int64_t i = 0; i < a.n; ++i) sum = Op{}(sum, load(x[place(a.reduced, i)]));
      static_cast<T*>(a.y)[o] = Store<T>::of(finished<Op>(sum, a.n));
    }
  }
};

}  // namespace troupe::device
