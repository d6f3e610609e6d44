// What the threads of a block do together.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

#if defined(__CUDA_ARCH__)
// A variable of the block; Id tells several of one type apart.
template <class A, int Id = 0>
__device__ A& block_shared() {
  __shared__ A a;
  return a;
}
#endif

// The numbers [begin, end) of a part of n.
struct PartOf {
  std::int64_t begin, end;
  __device__ static PartOf of(const Parts& parts, std::int64_t part, std::int64_t n) {
    const std::int64_t begin = parts.count == 1 ? 0 : part * parts.each;
    return {begin, n - begin < parts.each ? n : begin + parts.each};
  }
};

// All threads of a warp get op of all values. The tree is fixed. CUDA shuffles integers of less
// than 32 bits as int.
template <class Op, class S>
__device__ inline S warp_all(S value) {
  for (int bits = 16; bits != 0; bits /= 2)
    value = Op{}(value, S(__shfl_xor_sync(0xffffffffu, value, bits)));
  return value;
}

// All threads of a block get it. The tree depends on the size of the block alone. REQUIRES: whole
// warps, all of which call this.
template <class Op, class S>
__device__ inline S block_all(S value) {
  auto& of_warps = block_shared<S[32]>();
  value = warp_all<Op>(value);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int warps = int(blockDim.x) / 32;
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  value = warp_all<Op>(lane < warps ? of_warps[lane] : Op::template start<S>());
  __syncthreads();  // before they are written again
  return value;
}

// The threads of a block are 32 columns, of each of which a warp has some values: all threads get
// what Op makes of those of their column. The tree depends on the size of the block alone.
// REQUIRES: a power of two of warps, all of which call this.
template <class Op, class S>
__device__ inline S column_all(S value) {
  auto& of_warps = block_shared<S[32][33], 1>();
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  of_warps[warp][lane] = value;
  __syncthreads();
  for (int half = int(blockDim.x) / 64; half > 0; half /= 2) {
    if (warp < half) of_warps[warp][lane] = Op{}(of_warps[warp][lane], of_warps[warp + half][lane]);
    __syncthreads();
  }
  value = of_warps[0][lane];
  __syncthreads();  // before they are written again
  return value;
}

}  // namespace troupe::device
