// Random tensors: the numbers that the CPU draws, from the same counters.
#pragma once

#include <cmath>

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"
#include "ops/formulas/random.hpp"

namespace troupe::device {

// Philox 4x32-10, as core/hash.hpp has it.
struct Words {
  std::uint32_t at[4];

  __device__ static Words of(std::uint64_t key, std::uint64_t run, std::uint64_t block) {
    Words w{{std::uint32_t(block), std::uint32_t(block >> 32), std::uint32_t(run),
             std::uint32_t(run >> 32)}};
    std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * w.at[0];
      const std::uint64_t p1 = std::uint64_t(0xCD9E8D57u) * w.at[2];
      w = {{std::uint32_t(p1 >> 32) ^ w.at[1] ^ k0, std::uint32_t(p1),
            std::uint32_t(p0 >> 32) ^ w.at[3] ^ k1, std::uint32_t(p0)}};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return w;
  }
};

template <class C>
inline constexpr int kPerBlock = sizeof(C) == 8 ? 2 : 4;

template <class C>
struct Numbers {
  C at[kPerBlock<C>];
};

struct Uniform {
  template <class C>
  __device__ static Numbers<C> of(const Words& w) {
    if constexpr (sizeof(C) == 8)
      return {{formula::unit(w.at[0], w.at[1]), formula::unit(w.at[2], w.at[3])}};
    else
      return {{formula::unit(w.at[0]), formula::unit(w.at[1]), formula::unit(w.at[2]),
               formula::unit(w.at[3])}};
  }
};

// Box and Muller, by the functions of the library.
template <class C>
__device__ inline Numbers<C> library_normals(const Words& w) {
  Numbers<C> u = Uniform::of<C>(w);
  for (int i = 0; i < kPerBlock<C>; i += 2) {
    const C radius = std::sqrt(C(-2) * std::log(1 - u.at[i]));
    const C angle = C(2) * C(formula::kPi) * u.at[i + 1];
    u.at[i] = radius * std::cos(angle);
    u.at[i + 1] = radius * std::sin(angle);
  }
  return u;
}
struct Normal {
  template <class C>
  __device__ static Numbers<C> of(const Words& w) {
    if constexpr (sizeof(C) == 8) {
      return library_normals<C>(w);
    } else {
      Numbers<C> u = Uniform::of<C>(w);
      for (int i = 0; i < 4; i += 2) {
        const float radius = std::sqrt(-2.0f * formula::log_of(1 - u.at[i]));
        float cosine, sine;
        formula::turn(u.at[i + 1], cosine, sine);
        u.at[i] = radius * cosine;
        u.at[i + 1] = radius * sine;
      }
      return u;
    }
  }
};

template <class C>
__device__ inline C inside(C x, C least, C most) {
  x = x < least ? least : x;
  return most < x ? most : x;
}

// A thread draws all numbers of a block of words.
template <class Law, class T>
struct Draw {
  using Args = DrawArgs;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    constexpr int kWidth = kPerBlock<C>;
    const C shift = C(a.shift), scale = C(a.scale), times = C(a.times);
    const C least = C(a.least), most = C(a.most);
    for (std::int64_t b = first_element(); b * kWidth < a.n; b += element_step()) {
      const Numbers<C> z = Law::template of<C>(Words::of(a.key, a.run, std::uint64_t(b)));
      for (int k = 0; k < kWidth && b * kWidth + k < a.n; ++k) {
        const C x = shift + scale * z.at[k];
        static_cast<T*>(a.y)[b * kWidth + k] =
            Store<T>::of(std::is_same_v<Law, Uniform> ? inside(x * times, least, most) : x);
      }
    }
  }
};

// The first of an element's own normals within two standard deviations.
template <class T>
struct DrawTruncated {
  using Args = DrawArgs;
  using C = Compute<T>;
  __device__ static C one(const Args& a, std::int64_t element) {
    for (std::uint64_t attempt = 0; attempt < 64; ++attempt) {
      const auto z =
          library_normals<C>(Words::of(a.key, a.run, std::uint64_t(element) * 64 + attempt));
      for (int k = 0; k < kPerBlock<C>; ++k)
        if (z.at[k] > -2 && z.at[k] < 2) return z.at[k];
    }
    return 0;
  }
  __device__ static void run(const Args& a) {
    for (std::int64_t i = first_element(); i < a.n; i += element_step())
      static_cast<T*>(a.y)[i] =
          Store<T>::of(inside(C(a.shift) + C(a.scale) * one(a, i), C(a.least), C(a.most)));
  }
};

// The upper half of a product of 128 bits.
__device__ inline std::uint64_t upper_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = std::uint32_t(a), a1 = a >> 32, b0 = std::uint32_t(b), b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  const std::uint64_t other = a0 * b1 + std::uint32_t(middle);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

// low + an integer below span, two of each block of words.
template <class T>
struct DrawInt {
  using Args = DrawIntArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t i = first_element(); i < a.n; i += element_step()) {
      const Words w = Words::of(a.key, a.run, std::uint64_t(i / 2));
      const int k = i % 2 == 0 ? 0 : 2;
      const std::uint64_t word = std::uint64_t(w.at[k + 1]) << 32 | w.at[k];
      static_cast<T*>(a.y)[i] = T(a.low + upper_product(word, a.span));
    }
  }
};

}  // namespace troupe::device
