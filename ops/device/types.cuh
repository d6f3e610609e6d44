// Element types on the device, under the names of DType, and what arithmetic on them is done in.
//
// Device code is compiled by NVRTC, and by a compiler of the host for the emulated device
// (tests/fake_cuda/simt.hpp), which gives it CUDA's words.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace troupe::device {

using f32 = float;
using f64 = double;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};
struct alignas(16) u128 {  // of elements that are only moved
  std::uint64_t words[2];
};

template <class T>
using Compute = std::conditional_t<std::is_same_v<T, f16> || std::is_same_v<T, bf16>, float, T>;

template <class T>
__device__ inline T load(T x) {
  return x;
}
__device__ inline float load(bf16 x) { return std::bit_cast<float>(std::uint32_t(x.bits) << 16); }
__device__ inline float load(f16 x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  return simt::float_of_half(x.bits);
#endif
}

// A computed value as an element of type T: f16 and bf16 are rounded to the nearest, once.
template <class T>
struct Store {
  template <class C>
  __device__ static T of(C x) {
    return T(x);
  }
};
template <>
struct Store<bf16> {
  __device__ static bf16 of(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
#else
    const auto bits = std::bit_cast<std::uint32_t>(x);
    if (x != x) return {0x7fff};
    return {std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
#endif
  }
};
template <>
struct Store<f16> {
  __device__ static f16 of(float x) {
#if defined(__CUDA_ARCH__)
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
#else
    return {simt::half_of_float(x)};
#endif
  }
};

// The threads of all blocks share out [0, n): this one's elements are first, first + step, ...
__device__ inline std::int64_t first_element() {
  return std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t element_step() { return std::int64_t(gridDim.x) * blockDim.x; }

}  // namespace troupe::device
