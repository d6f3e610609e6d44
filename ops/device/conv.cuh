// Convolutions of NHWC images as products of matrices that are never made: an element of a patch is
// found when it is asked for. Each group of channels is a product of its own.
#pragma once

#include "ops/device/tiles.cuh"

namespace troupe::device {

// A number as three: those of the last two dimensions, and the rest.
struct Three {
  std::int64_t a, b, c;
  __device__ static Three of(std::int64_t number, std::int64_t dim_b, std::int64_t dim_c) {
    if ((number | dim_b | dim_c) >> 31 == 0) {  // a GPU divides these in a fraction of the time
      const auto n = std::uint32_t(number), b = std::uint32_t(dim_b), c = std::uint32_t(dim_c);
      return {n / c / b, n / c % b, n % c};
    }
    return {number / dim_c / dim_b, number / dim_c % dim_b, number % dim_c};
  }
};

struct ConvPlaces {
  const ConvArgs& s;

  // The element of x under place (row, column) of the filter in the window of y's pixel; -1: none.
  __device__ std::int64_t of_x(const Three& pixel, std::int64_t row, std::int64_t column,
                               std::int64_t channel) const {
    const std::int64_t y = pixel.b * s.h.stride - s.h.before + row * s.h.dilation;
    const std::int64_t x = pixel.c * s.w.stride - s.w.before + column * s.w.dilation;
    if (y < 0 || y >= s.h.in || x < 0 || x >= s.w.in) return -1;
    return ((pixel.a * s.h.in + y) * s.w.in + x) * s.in + channel;
  }
  // The element of y in whose window x's pixel is under place (row, column) of the filter.
  __device__ std::int64_t of_y(const Three& pixel, std::int64_t row, std::int64_t column,
                               std::int64_t channel) const {
    const std::int64_t y = pixel.b + s.h.before - row * s.h.dilation;
    const std::int64_t x = pixel.c + s.w.before - column * s.w.dilation;
    if (y < 0 || x < 0 || y % s.h.stride != 0 || x % s.w.stride != 0) return -1;
    if (y / s.h.stride >= s.h.out || x / s.w.stride >= s.w.out) return -1;
    return ((pixel.a * s.h.out + y / s.h.stride) * s.w.out + x / s.w.stride) * s.out + channel;
  }
};

// y[pixel, channel]: the sum over places of the filter and channels of x.
template <class T>
struct Conv2D {
  using Args = ConvArgs;
  __device__ static void run(const Args& s) {
    const T *x = static_cast<const T*>(s.x), *filter = static_cast<const T*>(s.filter);
    const std::int64_t in = s.in / s.groups, out = s.out / s.groups;
    Tiles<Compute<T>>::run(
        s.groups, s.images * s.h.out * s.w.out, out, s.h.size * s.w.size * in, true, false,
        [&](std::int64_t g, std::int64_t i, std::int64_t k) {
          const Three place = Three::of(k, s.w.size, in);
          const std::int64_t at = ConvPlaces{s}.of_x(Three::of(i, s.h.out, s.w.out), place.a,
                                                     place.b, g * in + place.c);
          return at < 0 ? Compute<T>(0) : load(x[at]);
        },
        [&](std::int64_t g, std::int64_t j, std::int64_t k) {
          return load(filter[k * s.out + g * out + j]);
        },
        [&](std::int64_t g, std::int64_t i, std::int64_t j, Compute<T> sum) {
          static_cast<T*>(s.to)[i * s.out + g * out + j] = Store<T>::of(sum);
        });
  }
};

// dx[pixel, channel]: the sum over places of the filter and channels of dy.
template <class T>
struct Conv2DBackpropInput {
  using Args = ConvArgs;
  __device__ static void run(const Args& s) {
    const T *dy = static_cast<const T*>(s.dy), *filter = static_cast<const T*>(s.filter);
    const std::int64_t in = s.in / s.groups, out = s.out / s.groups;
    Tiles<Compute<T>>::run(
        s.groups, s.images * s.h.in * s.w.in, in, s.h.size * s.w.size * out, true, true,
        [&](std::int64_t g, std::int64_t i, std::int64_t k) {
          const Three place = Three::of(k, s.w.size, out);
          const std::int64_t at =
              ConvPlaces{s}.of_y(Three::of(i, s.h.in, s.w.in), place.a, place.b, g * out + place.c);
          return at < 0 ? Compute<T>(0) : load(dy[at]);
        },
        [&](std::int64_t g, std::int64_t j, std::int64_t k) {
          return load(filter[(k / out * in + j) * s.out + g * out + k % out]);
        },
        [&](std::int64_t g, std::int64_t i, std::int64_t j, Compute<T> sum) {
          static_cast<T*>(s.to)[i * s.in + g * in + j] = Store<T>::of(sum);
        });
  }
};

// dfilter[place and channel of x, channel of y]: the sum over pixels of y. Of several parts each
// has its own, which is not rounded.
template <class T>
struct Conv2DBackpropFilter {
  using Args = ConvArgs;
  __device__ static void run(const Args& s) {
    const T *x = static_cast<const T*>(s.x), *dy = static_cast<const T*>(s.dy);
    const std::int64_t in = s.in / s.groups, out = s.out / s.groups;
    const std::int64_t rows = s.h.size * s.w.size * in, pixels = s.images * s.h.out * s.w.out;
    // Product p is of group p % groups, and of pixels from p / groups * part on.
    Tiles<Compute<T>>::run(
        s.groups * s.parts, rows, out, s.part, false, false,
        [&](std::int64_t p, std::int64_t i, std::int64_t k) {
          k += p / s.groups * s.part;
          if (k >= pixels) return Compute<T>(0);
          const Three place = Three::of(i, s.w.size, in);
          const std::int64_t at = ConvPlaces{s}.of_x(Three::of(k, s.h.out, s.w.out), place.a,
                                                     place.b, p % s.groups * in + place.c);
          return at < 0 ? Compute<T>(0) : load(x[at]);
        },
        [&](std::int64_t p, std::int64_t j, std::int64_t k) {
          k += p / s.groups * s.part;
          return k < pixels ? load(dy[k * s.out + p % s.groups * out + j]) : Compute<T>(0);
        },
        [&](std::int64_t p, std::int64_t i, std::int64_t j, Compute<T> sum) {
          const std::int64_t at = (p / s.groups * rows + i) * s.out + p % s.groups * out + j;
          if (s.parts == 1)
            static_cast<T*>(s.to)[at] = Store<T>::of(sum);
          else
            static_cast<Compute<T>*>(s.to)[at] = sum;
        });
  }
};

}  // namespace troupe::device
