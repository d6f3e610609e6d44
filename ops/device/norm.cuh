// Layer norm, group norm and batch norm, and their gradients. Of values whose squares overflow,
// though they do not, the statistics are those of the values times a power of two, `by`.
#pragma once

#include <cmath>
#include <limits>

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"
#include "ops/formulas/reduction.hpp"

namespace troupe::device {

// A power of two by which values up to `most`, which is large and finite, have normal squares.
__device__ inline float scale_of_squares(float most) {
  const int exponent = int(std::bit_cast<std::uint32_t>(most) >> 23 & 0xff) - 127;
  const int by = exponent < 126 ? exponent : 126;  // the largest has no reciprocal
  return std::bit_cast<float>(std::uint32_t(127 - by) << 23);
}
__device__ inline double scale_of_squares(double most) {
  const int exponent = int(std::bit_cast<std::uint64_t>(most) >> 52 & 0x7ff) - 1023;
  const int by = exponent < 1022 ? exponent : 1022;
  return std::bit_cast<double>(std::uint64_t(1023 - by) << 52);
}

struct OfRow {  // the threads of a block
  template <class Op, class C>
  __device__ static C all(C value) {
    return block_all<Op>(value);
  }
};
struct OfColumn {  // a column each 32 threads
  template <class Op, class C>
  __device__ static C all(C value) {
    return column_all<Op>(value);
  }
};

// How values are normalised: (x * by - mean) * inverse.
template <class C>
struct Moments {
  C by, mean, variance, inverse;

  // Of n values, of which this thread has x(i) for i = first, first + step, ... All threads of
  // the block call it.
  template <class Threads, class X>
  __device__ static Moments of(std::int64_t n, std::int64_t first, std::int64_t step, C epsilon,
                               X x) {
    Moments m = once<Threads>(n, first, step, epsilon, C(1), x);
    if (!block_all<formula::AnyOf>(!is_finite(m.variance) || !is_finite(m.mean))) return m;
    C most = C(0);
    for (std::int64_t i = first; i < n; i += step) {
      const C size = x(i) < C(0) ? -x(i) : x(i);
      most = formula::MaxOf{}(most, size);
    }
    most = Threads::template all<formula::MaxOf>(most);
    const bool again = is_finite(most) && (!is_finite(m.variance) || !is_finite(m.mean));
    const Moments scaled =
        once<Threads>(n, first, step, epsilon, again ? scale_of_squares(most) : C(1), x);
    return again ? scaled : m;
  }

  __device__ C normal(C x) const { return (x * by - mean) * inverse; }

 private:
  __device__ static bool is_finite(C x) { return x - x == C(0); }

  template <class Threads, class X>
  __device__ static Moments once(std::int64_t n, std::int64_t first, std::int64_t step, C epsilon,
                                 C by, X x) {
    using Sum = formula::SumOf;
    const C count = C(n);
    C sum = C(0);
#pragma unroll 4  // so many loads are on their way at a time
    for (std::int64_t i = first; i < n; i += step) sum += x(i) * by;
    C mean = Threads::template all<Sum>(sum) / count;
    // What the first mean misses, since its sum was rounded, is the mean of what is apart from it.
    C missed = C(0), squares = C(0);
#pragma unroll 4
    for (std::int64_t i = first; i < n; i += step) {
      const C apart = x(i) * by - mean;
      missed += apart;
      squares += apart * apart;
    }
    missed = Threads::template all<Sum>(missed);
    squares = Threads::template all<Sum>(squares);
    const C rest = missed / count, variance = (squares - missed * rest) / count;
    mean += rest;
    Moments m{by, mean, variance < C(0) ? C(0) : variance, C(0)};
    m.inverse = C(1) / std::sqrt(m.variance + epsilon * by * by);
    return m;
  }
};

// --- rows and groups ---

// Where an element is, and which of the scales and offsets is its own.
struct NormPlace {
  std::int64_t at, parameter;
};
// Row `row` of n elements.
struct RowOf {
  std::int64_t begin;
  __device__ RowOf(const LayerNormArgs& a, std::int64_t row) : begin(row * a.n) {}
  __device__ static std::int64_t count(const LayerNormArgs& a) { return a.rows; }
  __device__ static std::int64_t size(const LayerNormArgs& a) { return a.n; }
  // That of an element of row `row`, in column `column`.
  __device__ static std::int64_t of(const LayerNormArgs&, std::int64_t row, std::int64_t) {
    return row;
  }
  __device__ NormPlace operator()(std::int64_t i) const { return {begin + i, i}; }
};
// Row `row`: a group of an image, whose elements lie in parts, one at each position.
struct GroupOf {
  std::int64_t begin, channel, in_group, channels;
  __device__ GroupOf(const GroupNormArgs& a, std::int64_t row)
      : begin(row / a.groups * a.positions * a.n),
        channel(row % a.groups * a.in_group),
        in_group(a.in_group),
        channels(a.n) {}
  __device__ static std::int64_t count(const GroupNormArgs& a) { return a.images * a.groups; }
  __device__ static std::int64_t size(const GroupNormArgs& a) { return a.positions * a.in_group; }
  __device__ static std::int64_t of(const GroupNormArgs& a, std::int64_t row, std::int64_t column) {
    return row / a.positions * a.groups + column / a.in_group;
  }
  __device__ NormPlace operator()(std::int64_t i) const {
    // 32 bits are divided several times as fast.
    const std::int64_t position = i >> 32 == 0 && in_group >> 32 == 0
                                      ? std::int64_t(std::uint32_t(i) / std::uint32_t(in_group))
                                      : i / in_group;
    const std::int64_t of = channel + (i - position * in_group);
    return {begin + position * channels + of, of};
  }
};

template <class C>
__device__ inline Moments<C> moments_of(const void* moments, std::int64_t row) {
  const C* from = static_cast<const C*>(moments) + row * kMoments;
  return {from[0], from[1], C(0), from[2]};
}

// The sums of a column: dscale and doffset, or what they are joined of.
template <class T, class Args>
__device__ inline void put_sums(const Args& a, std::int64_t part, std::int64_t column,
                                Compute<T> scale, Compute<T> offset) {
  if (a.parts.count > 1) {
    Compute<T>* to = static_cast<Compute<T>*>(a.sums) + part * a.n + column;
    to[0] = scale, to[a.parts.count * a.n] = offset;
  } else {
    static_cast<T*>(a.dscale)[column] = Store<T>::of(scale);
    static_cast<T*>(a.doffset)[column] = Store<T>::of(offset);
  }
}

// By the threads of a block.
template <class T, class Of, class A>
__device__ inline Moments<Compute<T>> measured(const Of& row, const A& a) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(a.x);
  return Moments<C>::template of<OfRow>(Of::size(a), threadIdx.x, blockDim.x, C(a.epsilon),
                                        [=](std::int64_t i) { return load(x[row(i).at]); });
}

template <class T, class Of, class A>
struct NormOf {
  using Args = A;
  __device__ static void run(const Args& a) {
    for (std::int64_t k = blockIdx.x; k < Of::count(a); k += gridDim.x) {
      const Of row(a, k);
      const auto m = measured<T>(row, a);
      for (std::int64_t i = threadIdx.x; i < Of::size(a); i += blockDim.x) {
        const auto [at, parameter] = row(i);
        static_cast<T*>(a.y)[at] =
            Store<T>::of(m.normal(load(static_cast<const T*>(a.x)[at])) *
                             load(static_cast<const T*>(a.scale)[parameter]) +
                         load(static_cast<const T*>(a.offset)[parameter]));
      }
    }
  }
};

// The moments of each row.
template <class T, class Of, class A>
struct NormMoments {
  using Args = A;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    for (std::int64_t k = blockIdx.x; k < Of::count(a); k += gridDim.x) {
      const auto m = measured<T>(Of(a, k), a);
      if (threadIdx.x != 0) continue;
      C* to = static_cast<C*>(a.moments) + k * kMoments;
      to[0] = m.by, to[1] = m.mean, to[2] = m.inverse;
    }
  }
};

// dscale = sum of dy h, doffset = sum of dy: a block for a part of each 32 columns.
template <class T, class Of, class A>
struct NormSums {
  using Args = A;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int warps = int(blockDim.x) / 32;
    const std::int64_t strips = (a.n + 31) / 32;
    for (std::int64_t block = blockIdx.x; block < a.parts.count * strips; block += gridDim.x) {
      const std::int64_t column = block % strips * 32 + lane;
      const PartOf part = PartOf::of(a.parts, block / strips, a.rows);
      C scale = C(0), offset = C(0);
      if (column < a.n) {
#pragma unroll 4  // so many loads are on their way at a time
        for (std::int64_t row = part.begin + warp; row < part.end; row += warps) {
          const std::int64_t at = row * a.n + column;
          const C dy = load(static_cast<const T*>(a.dy)[at]);
          const auto m = moments_of<C>(a.moments, Of::of(a, row, column));
          offset += dy;
          scale += dy * m.normal(load(static_cast<const T*>(a.x)[at]));
        }
      }
      scale = column_all<formula::SumOf>(scale);
      offset = column_all<formula::SumOf>(offset);
      if (warp == 0 && column < a.n) put_sums<T>(a, block / strips, column, scale, offset);
    }
  }
};

// With g = dy scale and means over the row: dx = (g - mean(g) - h mean(g h)) inv_std. dx may be the
// memory of dy.
template <class T, class Of, class A>
struct NormGrad {
  using Args = A;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    const T *x = static_cast<const T*>(a.x), *dy = static_cast<const T*>(a.dy);
    const T* scale = static_cast<const T*>(a.scale);
    const std::int64_t n = Of::size(a);
    for (std::int64_t k = blockIdx.x; k < Of::count(a); k += gridDim.x) {
      const Of row(a, k);
      const auto m = moments_of<C>(a.moments, k);
      C mean = C(0), along = C(0);
      for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const auto [at, parameter] = row(i);
        const C slope = load(dy[at]) * load(scale[parameter]);
        mean += slope;
        along += slope * m.normal(load(x[at]));
      }
      mean = block_all<formula::SumOf>(mean) / C(n);
      along = block_all<formula::SumOf>(along) / C(n);
      for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const auto [at, parameter] = row(i);
        const C h = m.normal(load(x[at])), slope = load(dy[at]) * load(scale[parameter]);
        static_cast<T*>(a.y)[at] = Store<T>::of((slope - mean - h * along) * m.inverse * m.by);
      }
    }
  }
};

template <class T>
struct LayerNorm : NormOf<T, RowOf, LayerNormArgs> {};
template <class T>
struct LayerNormMoments : NormMoments<T, RowOf, LayerNormArgs> {};
template <class T>
struct LayerNormSums : NormSums<T, RowOf, LayerNormArgs> {};
template <class T>
struct LayerNormGrad : NormGrad<T, RowOf, LayerNormArgs> {};

template <class T>
struct GroupNorm : NormOf<T, GroupOf, GroupNormArgs> {};
template <class T>
struct GroupNormMoments : NormMoments<T, GroupOf, GroupNormArgs> {};
template <class T>
struct GroupNormSums : NormSums<T, GroupOf, GroupNormArgs> {};
template <class T>
struct GroupNormGrad : NormGrad<T, GroupOf, GroupNormArgs> {};

// --- channels ---

// The variance is handed out without bias.
template <class T>
__device__ inline void put_moments(const BatchNormArgs& a, std::int64_t column,
                                   const Moments<T>& m) {
  const T less_one = T(a.rows > 1 ? a.rows - 1 : 1);
  static_cast<T*>(a.mean)[column] = m.mean / m.by;
  static_cast<T*>(a.variance)[column] = m.variance / m.by / m.by * (T(a.rows) / less_one);
  static_cast<T*>(a.inv_std)[column] = m.inverse * m.by;
  static_cast<T*>(a.by)[column] = m.by;
}

// Statistics of each column, or of a part of it: a block for 32 of them.
template <class T>
struct BatchNormMoments {
  using Args = BatchNormArgs;
  __device__ static void run(const Args& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int warps = int(blockDim.x) / 32;
    const std::int64_t strips = (a.n + 31) / 32, parts = a.parts.count;
    for (std::int64_t block = blockIdx.x; block < parts * strips; block += gridDim.x) {
      const std::int64_t column = block % strips * 32 + lane;
      const PartOf part = PartOf::of(a.parts, block / strips, a.rows);
      const std::int64_t n = column < a.n ? part.end - part.begin : 0;
      const T* x = static_cast<const T*>(a.x) + part.begin * a.n + column;
      // Of a column outside, 0 / 0 is NaN; nobody takes it.
      const auto m = Moments<T>::template of<OfColumn>(n, warp, warps, T(a.epsilon),
                                                       [=](std::int64_t i) { return x[i * a.n]; });
      if (warp != 0 || column >= a.n) continue;
      if (parts > 1) {
        T* to = static_cast<T*>(a.sums) + block / strips * a.n + column;
        to[0] = m.by, to[parts * a.n] = m.mean, to[2 * parts * a.n] = m.variance;
      } else {
        put_moments(a, column, m);
      }
    }
  }
};

// Statistics of each column from those of its parts: a block for 32 of them. What the parts have is
// brought to one factor first, and to a smaller one where sums of squares might overflow.
template <class T>
struct BatchNormJoin {
  using Args = BatchNormArgs;
  using Sum = formula::SumOf;
  struct Column {
    const T* at;
    std::int64_t parts, n, rows, each;
    __device__ T by(std::int64_t part) const { return at[part * n]; }
    __device__ T mean(std::int64_t part) const { return at[(parts + part) * n]; }
    __device__ T variance(std::int64_t part) const { return at[(2 * parts + part) * n]; }
    __device__ T count(std::int64_t part) const {
      return T(part + 1 < parts ? each : rows - part * each);
    }
  };
  __device__ static T size(T x) { return x < T(0) ? -x : x; }
  __device__ static T factor(const Column& c, std::int64_t first, std::int64_t end,
                             std::int64_t step) {
    constexpr T kFar = sizeof(T) == 4 ? T(0x1p40) : T(0x1p480);
    T by = T(1), most = T(0);
    for (std::int64_t p = first; p < end; p += step) {
      by = c.by(p) < by ? c.by(p) : by;
      most = formula::MaxOf{}(most, size(c.mean(p)) / c.by(p));
      most = formula::MaxOf{}(most, std::sqrt(c.variance(p)) / c.by(p));
    }
    by = column_all<formula::MinOf>(by);
    most = column_all<formula::MaxOf>(most);
    if (!(most >= kFar) || most - most != T(0)) return by;
    const T normal = scale_of_squares(most);
    return normal < by ? normal : by;
  }
  __device__ static void run(const Args& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int warps = int(blockDim.x) / 32;
    const T rows = T(a.rows);
    for (std::int64_t strip = blockIdx.x; strip * 32 < a.n; strip += gridDim.x) {
      const std::int64_t column = strip * 32 + lane, end = column < a.n ? a.parts.count : 0;
      const Column c{static_cast<const T*>(a.sums) + column, a.parts.count, a.n, a.rows,
                     a.parts.each};
      const T by = factor(c, warp, end, warps);
      T sum = T(0);
      for (std::int64_t p = warp; p < end; p += warps)
        sum += c.count(p) * (c.mean(p) * (by / c.by(p)));
      T mean = column_all<Sum>(sum) / rows;
      T missed = T(0), squares = T(0);
      for (std::int64_t p = warp; p < end; p += warps) {
        const T to = by / c.by(p), apart = c.mean(p) * to - mean, count = c.count(p);
        missed += count * apart;
        squares += count * (apart * apart + c.variance(p) * to * to);
      }
      missed = column_all<Sum>(missed);
      squares = column_all<Sum>(squares);
      const T rest = missed / rows, variance = (squares - missed * rest) / rows;
      mean += rest;
      Moments<T> m{by, mean, variance < T(0) ? T(0) : variance, T(0)};
      m.inverse = T(1) / std::sqrt(m.variance + T(a.epsilon) * by * by);
      if (warp == 0 && column < a.n) put_moments(a, column, m);
    }
  }
};

// The statistics that are given.
template <class T>
struct BatchNormGiven {
  using Args = BatchNormArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t j = first_element(); j < a.n; j += element_step()) {
      const T variance = static_cast<const T*>(a.variance_in)[j];
      static_cast<T*>(a.mean)[j] = static_cast<const T*>(a.mean_in)[j];
      static_cast<T*>(a.variance)[j] = variance;
      static_cast<T*>(a.inv_std)[j] = T(1) / std::sqrt(variance + T(a.epsilon));
      static_cast<T*>(a.by)[j] = T(1);
    }
  }
};

// y may be the memory of x.
template <class T>
struct BatchNorm {
  using Args = BatchNormArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.rows * a.n; o += element_step()) {
      const std::int64_t j = o % a.n;
      const T x = static_cast<const T*>(a.x)[o], by = static_cast<const T*>(a.by)[j];
      const T mean = static_cast<const T*>(a.mean)[j], s = static_cast<const T*>(a.inv_std)[j];
      const T scale = static_cast<const T*>(a.scale)[j],
              offset = static_cast<const T*>(a.offset)[j];
      static_cast<T*>(a.y)[o] = by == T(1) ? (x - mean) * (s * scale) + offset
                                           : (x * by - mean * by) * (s / by) * scale + offset;
    }
  }
};

// doffset = sum dy, dscale = sum dy h.
template <class T>
struct BatchNormSums {
  using Args = BatchNormArgs;
  __device__ static void run(const Args& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int warps = int(blockDim.x) / 32;
    const std::int64_t strips = (a.n + 31) / 32;
    for (std::int64_t block = blockIdx.x; block < a.parts.count * strips; block += gridDim.x) {
      const std::int64_t column = block % strips * 32 + lane;
      const PartOf part = PartOf::of(a.parts, block / strips, a.rows);
      T scale = T(0), offset = T(0);
      if (column < a.n) {
        const T mean = static_cast<const T*>(a.mean_in)[column];
        const T s = static_cast<const T*>(a.inv_std)[column];
#pragma unroll 4  // so many loads are on their way at a time
        for (std::int64_t row = part.begin + warp; row < part.end; row += warps) {
          const std::int64_t at = row * a.n + column;
          const T dy = static_cast<const T*>(a.dy)[at];
          offset += dy;
          scale += dy * ((static_cast<const T*>(a.x)[at] - mean) * s);
        }
      }
      scale = column_all<formula::SumOf>(scale);
      offset = column_all<formula::SumOf>(offset);
      if (warp == 0 && column < a.n) put_sums<T>(a, block / strips, column, scale, offset);
    }
  }
};

// dx = dy f + (x - mean) e b + k, with four numbers of each channel. The cube of inv_std is no
// normal number where values are large; of such a channel e is inv_std, and else 1. dx may be the
// memory of dy.
template <class T>
struct BatchNormGrad {
  using Args = BatchNormArgs;
  struct Factors {
    T f, b, k, e;
  };
  __device__ static bool is_normal(T x) {
    const T size = x < T(0) ? -x : x;
    constexpr T kLeast = sizeof(T) == 4 ? T(0x1p-126) : T(0x1p-1022);
    return size >= kLeast && size <= std::numeric_limits<T>::max();
  }
  __device__ static Factors of(const Args& a, std::int64_t j) {
    const auto at = [j](const void* x) { return static_cast<const T*>(x)[j]; };
    const T s = at(a.inv_std), scale = at(a.scale);
    Factors r{scale * s, T(0), T(0), T(1)};
    if (!a.training) return r;
    const T count = T(a.rows > 1 ? a.rows : 1), less_one = T(a.rows > 2 ? a.rows - 1 : 1);
    const T dscale = at(a.dscale), dvariance = at(a.dvariance), dinv = at(a.dinv_std);
    r.k = (at(a.dmean) - r.f * at(a.doffset)) / count;
    r.b = T(2) * dvariance / less_one - (r.f * s * dscale + s * s * s * dinv) / count;
    if (s == T(0) || is_normal(s * s * s)) return r;
    r.e = s;
    r.b = T(2) * dvariance / s / less_one - (r.f * dscale + s * s * dinv) / count;
    return r;
  }
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.rows * a.n; o += element_step()) {
      const Factors r = of(a, o % a.n);
      const T mean = static_cast<const T*>(a.mean_in)[o % a.n];
      static_cast<T*>(a.y)[o] = static_cast<const T*>(a.dy)[o] * r.f +
                                (static_cast<const T*>(a.x)[o] - mean) * r.e * r.b + r.k;
    }
  }
};

}  // namespace troupe::device
