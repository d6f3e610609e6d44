// What attention does beside products of matrices. A block for each query of each problem.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"
#include "ops/device/types.cuh"
#include "ops/formulas/reduction.hpp"

namespace troupe::device {

// The keys that one query may look at.
struct OpenKeys {
  const std::uint8_t* mask;
  std::int64_t step, end, keys;

  __device__ static OpenKeys of(const AttentionMaskArgs& a, std::int64_t row) {
    const std::int64_t query = row % a.queries, problem = row / a.queries;
    const auto* mask = static_cast<const std::uint8_t*>(a.mask);
    if (mask)
      mask += problem / a.inner * a.of_outer + problem % a.inner * a.of_inner + query * a.of_query;
    return {mask, a.of_key, a.causal != 0 && query + 1 < a.keys ? query + 1 : a.keys, a.keys};
  }
  __device__ bool operator()(std::int64_t key) const {
    return key < end && (!mask || mask[key * step] != 0);
  }
  // f(key) of all that are open, joined by Op.
  template <class Op, class C, class F>
  __device__ C all(F f) const {
    C value = Op::template start<C>();
    for (std::int64_t j = threadIdx.x; j < end; j += blockDim.x)
      if ((*this)(j)) value = Op{}(value, f(j));
    return block_all<Op>(value);
  }
  template <class C>
  __device__ bool any() const {
    return all<formula::SumOf, C>([](std::int64_t) { return C(1); }) != C(0);
  }
  // x[key] = f(key), or 0 where it is closed.
  template <class T, class F>
  __device__ void each(T* x, F f) const {
    using C = Compute<T>;
    for (std::int64_t j = threadIdx.x; j < keys; j += blockDim.x)
      x[j] = Store<T>::of((*this)(j) ? C(f(j)) : C(0));
  }
};

// Weights of products: e^(scale x - most) / sum.
template <class T>
struct AttentionWeights {
  using Args = AttentionRowsArgs;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    const C scale = C(a.scale);
    for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
      const OpenKeys open = OpenKeys::of(a.open, row);
      T* x = static_cast<T*>(a.scores) + row * a.open.keys;
      C log = C(0);
      if (open.template any<C>()) {
        const auto score = [=](std::int64_t j) { return load(x[j]) * scale; };
        const C most = open.template all<formula::MaxOf, C>(score);
        const C sum = open.template all<formula::SumOf, C>(
            [=](std::int64_t j) { return std::exp(score(j) - most); });
        const C part = C(1) / sum;
        open.each(x, [=](std::int64_t j) { return std::exp(score(j) - most) * part; });
        log = most + std::log(sum);
      } else {
        open.each(x, [](std::int64_t) { return C(0); });
      }
      if (threadIdx.x == 0) static_cast<C*>(a.stats)[row] = log;
    }
  }
};

// Weights of products by the stats, and the gradients of the products.
template <class T>
struct AttentionSlopes {
  using Args = AttentionRowsArgs;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    const C scale = C(a.scale);
    for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
      const OpenKeys open = OpenKeys::of(a.open, row);
      const T *y = static_cast<const T*>(a.y) + row * a.out,
              *dy = static_cast<const T*>(a.dy) + row * a.out;
      C mean = C(0);
      for (std::int64_t j = threadIdx.x; j < a.out; j += blockDim.x)
        mean = mean + load(dy[j]) * load(y[j]);
      mean = block_all<formula::SumOf>(mean);
      const C log = static_cast<const C*>(a.stats)[row];
      T *x = static_cast<T*>(a.scores) + row * a.open.keys,
        *slopes = static_cast<T*>(a.slopes) + row * a.open.keys;
      for (std::int64_t j = threadIdx.x; j < a.open.keys; j += blockDim.x) {
        C weight = C(0), slope = C(0);
        if (open(j)) {
          weight = std::exp(load(x[j]) * scale - log);
          slope = weight * (load(slopes[j]) - mean) * scale;
        }
        x[j] = Store<T>::of(weight);
        slopes[j] = Store<T>::of(slope);
      }
    }
  }
};

// A library's form of a mask: what it adds to scores.
template <class T>
struct AttentionBias {
  using Args = AttentionBiasArgs;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    AttentionMaskArgs mask_alone = a.open;
    mask_alone.causal = 0;
    for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
      const OpenKeys open = OpenKeys::of(mask_alone, row);
      T* to = static_cast<T*>(a.bias) + row * a.open.keys;
      for (std::int64_t j = threadIdx.x; j < a.open.keys; j += blockDim.x)
        to[j] = Store<T>::of(open(j) ? C(0) : C(a.never));
      const bool any = OpenKeys::of(a.open, row).template any<C>();
      if (threadIdx.x == 0) static_cast<std::uint8_t*>(a.closed)[row] = any ? 0 : 1;
    }
  }
};

template <class T>
struct AttentionClose {
  using Args = AttentionCloseArgs;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
      const std::int64_t query = row % a.queries, problem = row / a.queries;
      const std::int64_t at =
          problem / a.inner * a.of_outer + problem % a.inner * a.of_inner + query;
      if (static_cast<const std::uint8_t*>(a.closed)[at] == 0) continue;
      for (std::int64_t j = threadIdx.x; j < a.out; j += blockDim.x)
        static_cast<T*>(a.y)[row * a.out + j] = Store<T>::of(C(0));
      if (threadIdx.x == 0) static_cast<C*>(a.stats)[row] = C(0);
    }
  }
};

}  // namespace troupe::device
