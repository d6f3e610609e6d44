// Where along a dimension the extreme value first stands.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"
#include "ops/device/types.cuh"

namespace troupe::device {

// A value and where it stands.
template <class C>
struct Placed {
  C value;
  std::int64_t at;

  // The first one of places first, first + step, ... of n that More holds of against all others, or
  // the first NaN; place 0 where none is more than that.
  template <class More, class X>
  __device__ static Placed extreme(std::int64_t first, std::int64_t n, std::int64_t step, X x) {
    Placed best{x(0), 0};
    for (std::int64_t i = first; i < n && best.value == best.value; i += step) {
      const C value = x(i);
      if (More{}(value, best.value) || value != value) best = {value, i};
    }
    return best;
  }
  // Of this one and another one the one that is more, a NaN rather than a number; of equals the
  // first. In which order many are joined does not matter.
  template <class More>
  __device__ Placed or_other(Placed other) const {
    const bool is_nan = value != value, other_is_nan = other.value != other.value;
    if (is_nan != other_is_nan) return is_nan ? *this : other;
    if (More{}(value, other.value)) return *this;
    if (More{}(other.value, value)) return other;
    return at <= other.at ? *this : other;
  }
};

// All threads of a warp get what `or_other` makes of all of theirs.
template <class More, class C>
__device__ inline Placed<C> warp_extreme(Placed<C> best) {
  for (int bits = 16; bits != 0; bits /= 2) {
    const C value = C(__shfl_xor_sync(0xffffffffu, best.value, bits));
    const std::int64_t at = __shfl_xor_sync(0xffffffffu, best.at, bits);
    best = best.template or_other<More>({value, at});
  }
  return best;
}

// y[outer, inner] = the first place in x[outer, 0 .. n, inner] that More holds of against all
// others; that of the first NaN if there is one. A thread for each output.
template <class More, class T>
struct ArgExtreme {
  using Args = ReduceArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.outer * a.inner; o += element_step()) {
      const T* x = static_cast<const T*>(a.x) + o / a.inner * a.n * a.inner + o % a.inner;
      const auto best = Placed<Compute<T>>::template extreme<More>(
          1, a.n, 1, [=](std::int64_t i) { return load(x[i * a.inner]); });
      static_cast<std::int64_t*>(a.y)[o] = best.at;
    }
  }
};

// The same where inner is 1: a block for each row, so that neighbours read neighbours.
template <class More, class T>
struct ArgExtremeOfRows {
  using Args = ReduceArgs;
  using Best = Placed<Compute<T>>;
  __device__ static void run(const Args& a) {
    auto& of_warps = block_shared<Best[32]>();
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int warps = int(blockDim.x) / 32;
    for (std::int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
      const T* x = static_cast<const T*>(a.x) + row * a.n;
      Best best = Best::template extreme<More>(threadIdx.x, a.n, blockDim.x,
                                               [=](std::int64_t i) { return load(x[i]); });
      best = warp_extreme<More>(best);
      if (lane == 0) of_warps[warp] = best;
      __syncthreads();
      best = warp_extreme<More>(of_warps[lane < warps ? lane : 0]);
      if (threadIdx.x == 0) static_cast<std::int64_t*>(a.y)[row] = best.at;
      __syncthreads();  // before they are written again
    }
  }
};

}  // namespace troupe::device
