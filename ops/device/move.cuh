// Elements moved between tensors that are seen through other strides.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

// Where element o is on both sides.
struct Places {
  std::int64_t from, to;
  __device__ static Places of(const Walk<2>& walk, std::int64_t o) {
    Places at{0, 0};
#pragma unroll 1  // a division is long: copies of it only take time to compile
    for (int d = walk.rank - 1; d >= 0; --d) {
      const std::int64_t place = o % walk.dims[d];
      o /= walk.dims[d];
      at.from += place * walk.strides[0][d];
      at.to += place * walk.strides[1][d];
    }
    return at;
  }
};

template <class T>
struct Move {
  using Args = MoveArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.n; o += element_step()) {
      const Places at = Places::of(a.walk, o);
      static_cast<T*>(a.to)[at.to] = static_cast<const T*>(a.from)[at.from];
    }
  }
};

// to = to + from, rounded once. No two elements go to one place.
template <class T>
struct AddTo {
  using Args = MoveArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.n; o += element_step()) {
      const Places at = Places::of(a.walk, o);
      T& y = static_cast<T*>(a.to)[at.to];
      y = Store<T>::of(load(y) + load(static_cast<const T*>(a.from)[at.from]));
    }
  }
};

template <class T>
struct Range {
  using Args = RangeArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t i = first_element(); i < a.n; i += element_step()) {
      if constexpr (std::is_integral_v<T>)
        static_cast<T*>(a.to)[i] = T(a.first + std::uint64_t(i) * a.step);
      else
        static_cast<T*>(a.to)[i] = T(a.start) + T(i) * T(a.delta);
    }
  }
};

// All n elements are `value`.
template <class T>
struct FillWith {
  using Args = FillArgs;
  __device__ static void run(const Args& a) {
    const T value = Store<T>::of(Compute<T>(a.value));
    for (std::int64_t o = first_element(); o < a.n; o += element_step())
      static_cast<T*>(a.to)[o] = value;
  }
};

}  // namespace troupe::device
