// Running sums and products along one dimension.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"

namespace troupe::device {

// Where the elements of a line are, in its order.
struct Line {
  std::int64_t first, n, inner;
  bool reverse;
  __device__ static Line of(const ScanArgs& a, std::int64_t line) {
    return {line / a.inner * a.n * a.inner + line % a.inner, a.n, a.inner, a.reverse};
  }
  __device__ std::int64_t at(std::int64_t i) const {
    return first + (reverse ? n - 1 - i : i) * inner;
  }
};

// One after the other. A thread for each line.
template <class Op, class T>
struct ScanLines {
  using Args = ScanArgs;
  using S = Compute<T>;
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.outer * a.inner; o += element_step()) {
      const Line line = Line::of(a, o);
      S so_far = Op::template start<S>();
      for (std::int64_t i = 0; i < a.n; ++i) {
        const std::int64_t at = line.at(i);
        const S before = so_far;
        so_far = Op{}(before, load(static_cast<const T*>(a.x)[at]));
        static_cast<T*>(a.y)[at] = Store<T>::of(a.exclusive ? before : so_far);
      }
    }
  }
};

// Few long lines: a block for each goes through it tile by tile. Each thread has a few neighbours;
// what is before them comes from a tree that is the same in every run.
template <class Op, class T>
struct ScanBlocks {
  using Args = ScanArgs;
  using S = Compute<T>;
  static constexpr int kEach = 4, kThreads = 256, kTile = kEach * kThreads;

  __device__ static void run(const Args& a) {
    auto& tile = block_shared<S[kTile]>();
    auto& sums = block_shared<S[2][kThreads], 1>();
    const int thread = int(threadIdx.x);
    for (std::int64_t o = blockIdx.x; o < a.outer * a.inner; o += gridDim.x) {
      const Line line = Line::of(a, o);
      S carried = Op::template start<S>();
      for (std::int64_t begin = 0; begin < a.n; begin += kTile) {
        for (int i = thread; i < kTile; i += kThreads)
          tile[i] = begin + i < a.n ? S(load(static_cast<const T*>(a.x)[line.at(begin + i)]))
                                    : Op::template start<S>();
        __syncthreads();
        S own[kEach];
        S sum = Op::template start<S>();
        for (int k = 0; k < kEach; ++k) sum = Op{}(sum, own[k] = tile[thread * kEach + k]);
        const S all = up_to(sums, sum);
        S so_far = Op{}(carried, thread == 0 ? Op::template start<S>() : sums[0][thread - 1]);
        for (int k = 0; k < kEach; ++k) {
          const S before = so_far;
          so_far = Op{}(before, own[k]);
          tile[thread * kEach + k] = a.exclusive ? before : so_far;
        }
        carried = Op{}(carried, all);
        __syncthreads();
        for (int i = thread; i < kTile && begin + i < a.n; i += kThreads)
          static_cast<T*>(a.y)[line.at(begin + i)] = Store<T>::of(tile[i]);
        __syncthreads();  // before both are written again
      }
    }
  }

  // sums[0][i] = the join of what threads 0 to i have; returns that of all.
  __device__ static S up_to(S (&sums)[2][kThreads], S mine) {
    const int thread = int(threadIdx.x);
    int from = 0;
    sums[0][thread] = mine;
    __syncthreads();
    for (int step = 1; step < kThreads; step *= 2, from = 1 - from) {
      sums[1 - from][thread] =
          thread < step ? sums[from][thread] : Op{}(sums[from][thread - step], sums[from][thread]);
      __syncthreads();
    }
    return sums[0][kThreads - 1];  // after eight turns
  }
};

// y[i] = a[i] y[i - 1] + b[i], with a[i - 1] if `behind`; a factor of 0 begins anew. A thread for
// each line.
template <class T>
struct RecurrenceLines {
  using Args = ScanArgs;
  using S = Compute<T>;
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.outer * a.inner; o += element_step()) {
      const Line line = Line::of(a, o);
      S y = S(0), last = S(0);
      for (std::int64_t i = 0; i < a.n; ++i) {
        const std::int64_t at = line.at(i);
        const S mine = load(static_cast<const T*>(a.factors)[at]), factor = a.behind ? last : mine;
        const S b = load(static_cast<const T*>(a.x)[at]);
        y = factor == S(0) ? b : b + factor * y;
        last = mine;
        static_cast<T*>(a.y)[at] = Store<T>::of(y);
      }
    }
  }
};

}  // namespace troupe::device
