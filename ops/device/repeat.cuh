// Elements repeated along dimensions, times a number.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

// The number is rounded to what T is computed as, and the product to T.
template <class T>
struct RepeatScaled {
  using Args = RepeatScaledArgs;
  __device__ static void run(const Args& args) {
    const ElementwiseArgs<1>& a = args.moved;
    const auto scale = Compute<T>(args.scale);
    for (std::int64_t o = first_element(); o < a.n; o += element_step()) {
      std::int64_t at = 0, rest = o;
#pragma unroll 1  // a division is long: copies of it only take time to compile
      for (int d = a.walk.rank - 1; d >= 0; --d) {
        at += rest % a.walk.dims[d] * a.walk.strides[0][d];
        rest /= a.walk.dims[d];
      }
      static_cast<T*>(a.out)[o] = Store<T>::of(load(static_cast<const T*>(a.in[0])[at]) * scale);
    }
  }
};

}  // namespace troupe::device
