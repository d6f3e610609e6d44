// Pools over NHWC images. No two threads write one element, so that sums have one order: that of
// the windows.
#pragma once

#include <limits>

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

// A window's part inside the image.
struct PoolWindow {
  std::int64_t image, top, bottom, left, right, channel;

  // That of element `o` of y.
  __device__ static PoolWindow of(const PoolArgs& p, std::int64_t o) {
    const std::int64_t column = o / p.channels % p.w.out, row = o / p.channels / p.w.out % p.h.out;
    PoolWindow w{o / p.channels / p.w.out / p.h.out, 0, 0, 0, 0, o % p.channels};
    range(p.h, row, w.top, w.bottom);
    range(p.w, column, w.left, w.right);
    return w;
  }
  __device__ static void range(const PoolAxis& a, std::int64_t out, std::int64_t& begin,
                               std::int64_t& end) {
    begin = out * a.stride - a.before;
    end = begin + a.size < a.in ? begin + a.size : a.in;
    if (begin < 0) begin = 0;
  }
  __device__ std::int64_t count() const { return (bottom - top) * (right - left); }
  __device__ std::int64_t pixel(const PoolArgs& p, std::int64_t row, std::int64_t column) const {
    return ((image * p.h.in + row) * p.w.in + column) * p.channels + channel;
  }
  // The element of x that has the maximum `most`, the first one; -1: none.
  template <class T>
  __device__ std::int64_t first(const PoolArgs& p, const T* x, Compute<T> most) const {
    for (std::int64_t row = top; row < bottom; ++row)
      for (std::int64_t column = left; column < right; ++column) {
        const std::int64_t at = pixel(p, row, column);
        const Compute<T> value = load(x[at]);
        if (value >= most || value != value) return at;
      }
    return -1;
  }
};

// y = the largest element of each window, NaN if there is one.
template <class T>
struct MaxPool {
  using Args = PoolArgs;
  __device__ static void run(const Args& p) {
    const T* x = static_cast<const T*>(p.x);
    for (std::int64_t o = first_element(); o < p.elements; o += element_step()) {
      const PoolWindow w = PoolWindow::of(p, o);
      Compute<T> best = -std::numeric_limits<Compute<T>>::infinity();
      for (std::int64_t row = w.top; row < w.bottom; ++row)
        for (std::int64_t column = w.left; column < w.right; ++column) {
          const Compute<T> value = load(x[w.pixel(p, row, column)]);
          best = value > best || value != value ? value : best;
        }
      static_cast<T*>(p.to)[o] = Store<T>::of(best);
    }
  }
};

template <class T>
struct AvgPool {
  using Args = PoolArgs;
  __device__ static void run(const Args& p) {
    const T* x = static_cast<const T*>(p.x);
    for (std::int64_t o = first_element(); o < p.elements; o += element_step()) {
      const PoolWindow w = PoolWindow::of(p, o);
      Compute<T> sum = 0;
      for (std::int64_t row = w.top; row < w.bottom; ++row)
        for (std::int64_t column = w.left; column < w.right; ++column)
          sum += load(x[w.pixel(p, row, column)]);
      static_cast<T*>(p.to)[o] = Store<T>::of(sum / Compute<T>(w.count()));
    }
  }
};

// For each window the element of `from` where the first maximum of x is.
template <class T>
struct MaxPoolPick {
  using Args = PoolArgs;
  __device__ static void run(const Args& p) {
    for (std::int64_t o = first_element(); o < p.elements; o += element_step()) {
      const std::int64_t at = PoolWindow::of(p, o).first(p, static_cast<const T*>(p.x),
                                                         load(static_cast<const T*>(p.y)[o]));
      static_cast<T*>(p.to)[o] =
          at < 0 ? Store<T>::of(Compute<T>(0)) : static_cast<const T*>(p.from)[at];
    }
  }
};

// For element `o` of x: share(number of an element of y) of all windows that it is in, added up.
template <class T, class Share>
__device__ inline T sum_of_windows(const PoolArgs& p, std::int64_t o, Share share) {
  const std::int64_t channel = o % p.channels, column = o / p.channels % p.w.in;
  const std::int64_t row = o / p.channels / p.w.in % p.h.in;
  const std::int64_t image = o / p.channels / p.w.in / p.h.in;
  const auto first = [](const PoolAxis& a, std::int64_t in) {
    const std::int64_t from = in + a.before - a.size + 1;
    return from <= 0 ? std::int64_t(0) : (from + a.stride - 1) / a.stride;
  };
  const auto last = [](const PoolAxis& a, std::int64_t in) {
    const std::int64_t at = (in + a.before) / a.stride;
    return at < a.out ? at : a.out - 1;
  };
  T sum = T(0);
  for (std::int64_t i = first(p.h, row); i <= last(p.h, row); ++i)
    for (std::int64_t j = first(p.w, column); j <= last(p.w, column); ++j)
      sum += share(((image * p.h.out + i) * p.w.out + j) * p.channels + channel);
  return sum;
}

// Of equal maxima of a window the first takes all of its dy, which is `from`.
template <class T>
struct MaxPoolGrad {
  using Args = PoolArgs;
  __device__ static void run(const Args& p) {
    const T *x = static_cast<const T*>(p.x), *y = static_cast<const T*>(p.y);
    for (std::int64_t o = first_element(); o < p.elements; o += element_step()) {
      const Compute<T> value = load(x[o]);
      static_cast<T*>(p.to)[o] =
          Store<T>::of(sum_of_windows<Compute<T>>(p, o, [&](std::int64_t at) {
            const Compute<T> most = load(y[at]);
            const bool mine =
                (value >= most || value != value) && PoolWindow::of(p, at).first(p, x, most) == o;
            return mine ? load(static_cast<const T*>(p.from)[at]) : Compute<T>(0);
          }));
    }
  }
};

template <class T>
struct AvgPoolGrad {
  using Args = PoolArgs;
  __device__ static void run(const Args& p) {
    for (std::int64_t o = first_element(); o < p.elements; o += element_step())
      static_cast<T*>(
          p.to)[o] = Store<T>::of(sum_of_windows<Compute<T>>(p, o, [&](std::int64_t at) {
        return load(static_cast<const T*>(p.from)[at]) / Compute<T>(PoolWindow::of(p, at).count());
      }));
  }
};

}  // namespace troupe::device
