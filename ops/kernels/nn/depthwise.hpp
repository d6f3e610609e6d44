// Depthwise convolution: each channel with filters of its own. No matrix product pays here: there
// is one multiplication for each element that is read. The loops go over channels innermost, for
// four neighbouring pixels at once, which share what they read of the filter.
//
// The forward pass and the gradient for the images are one loop. For each row and each column of
// what is made, a table tells the rows or columns that are read, and the filter's with each:
//
//   made[i, j, c] = sum over (i', r) of rows[i] and (j', s) of columns[j] of
//                   read[i', j', c] filter[r, s, c]
//
// Where a channel has m filters, the channels of the images are repeated m times first.
#pragma once

#include <type_traits>

#include "devices/chunks.hpp"
#include "ops/kernels/nn/im2col.hpp"
#include "ops/kernels/support/packet.hpp"
#include "ops/kernels/support/typed.hpp"

namespace troupe {

inline bool is_depthwise(const ConvShape& s) { return s.groups > 1 && s.groups == s.in_c; }

// V is a vector of T, or a T.
template <class V, class T>
TROUPE_INLINE V load_at(const T* from) {
  if constexpr (std::is_same_v<V, T>) {
    return *from;
  } else {  // not as std::conditional_t: clang 14 forgets alignments of arguments of templates
    using Loose = typename VectorType<T, sizeof(V)>::unaligned;
    return *reinterpret_cast<const Loose*>(from);
  }
}
template <class V, class T>
TROUPE_INLINE void store_at(T* to, V x) {
  if constexpr (std::is_same_v<V, T>) {
    *to = x;
  } else {
    using Loose = typename VectorType<T, sizeof(V)>::unaligned;
    *reinterpret_cast<Loose*>(to) = x;
  }
}

// Which places are read for each place that is made, on one axis: see above.
// Places and taps are offsets in elements: so many of these lie between two neighbours.
struct AxisSteps {
  std::int64_t place, tap;
};
class AxisTaps {
 public:
  struct Tap {
    std::int64_t place, tap;
  };
  // Forward: of `made` places of the output, each reading a window.
  static Expected<AxisTaps> forward(const KernelContext& c, std::int64_t made, std::int64_t read,
                                    std::int64_t size, std::int64_t stride, std::int64_t dilation,
                                    std::int64_t pad, AxisSteps steps) {
    return make(c, made, size, steps, [=](std::int64_t at, std::int64_t tap) {
      const std::int64_t place = at * stride + tap * dilation - pad;
      return place >= 0 && place < read ? place : -1;
    });
  }
  // Backward: of `made` places of the input, each read by the outputs whose windows hold it.
  static Expected<AxisTaps> backward(const KernelContext& c, std::int64_t made, std::int64_t read,
                                     std::int64_t size, std::int64_t stride, std::int64_t dilation,
                                     std::int64_t pad, AxisSteps steps) {
    return make(c, made, size, steps, [=](std::int64_t at, std::int64_t tap) {
      const std::int64_t place = at + pad - tap * dilation;
      return place >= 0 && place % stride == 0 && place / stride < read ? place / stride : -1;
    });
  }

  std::int64_t count(std::int64_t at) const { return data_[at * row_]; }
  Tap tap(std::int64_t at, std::int64_t i) const {
    const std::int64_t* pair = data_ + at * row_ + 1 + 2 * i;
    return {pair[0], pair[1]};
  }
  // Whether places [at, at + n) have the same taps.
  bool alike(std::int64_t at, std::int64_t n) const {
    for (std::int64_t other = at + 1; other < at + n; ++other) {
      if (count(other) != count(at)) return false;
      for (std::int64_t i = 0; i < count(at); ++i)
        if (tap(other, i).tap != tap(at, i).tap) return false;
    }
    return true;
  }

 private:
  template <class F>
  static Expected<AxisTaps> make(const KernelContext& c, std::int64_t made, std::int64_t size,
                                 AxisSteps steps, F&& place_of) {
    AxisTaps taps;
    taps.row_ = 1 + 2 * size;
    TROUPE_TRY(Shape shape, Shape::make(std::array{made, taps.row_}));
    TROUPE_TRY(taps.table_, c.allocate(DType::i64, shape));
    std::int64_t* row = taps.table_.template mutable_data<std::int64_t>();
    taps.data_ = row;
    for (std::int64_t at = 0; at < made; ++at, row += taps.row_) {
      std::int64_t n = 0;
      for (std::int64_t tap = 0; tap < size; ++tap) {
        const std::int64_t place = place_of(at, tap);
        if (place < 0) continue;
        row[1 + 2 * n] = place * steps.place;
        row[2 + 2 * n] = tap * steps.tap;
        ++n;
      }
      row[0] = n;
    }
    return taps;
  }

  Tensor table_;
  const std::int64_t* data_ = nullptr;
  std::int64_t row_ = 0;
};

// Sizes and tables of one such loop.
struct DepthwiseLoop {
  std::int64_t batch, made_h, made_w, read_h, read_w, channels;
  AxisTaps rows, columns;

  AxisSteps row_steps(std::int64_t filter_w) const {
    return {read_w * channels, filter_w * channels};
  }
  AxisSteps column_steps() const { return {channels, channels}; }
};

// `kVectors` vectors of channels from `c` on, of `kPixels` pixels from column `j` on; `read` begins
// at the image.
template <int kPixels, int kVectors, class V, class T>
void depthwise_tile(const DepthwiseLoop& l, std::int64_t i, std::int64_t j, std::int64_t c,
                    const T* read, const T* filter, T* made) {
  constexpr std::int64_t kWidth = sizeof(V) / sizeof(T);
  // Unrolled, so that sums stay in registers from the first to the last.
  V sum[kPixels][kVectors];
#pragma GCC unroll 4
  for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[p][v] = V{};
  for (std::int64_t a = 0; a < l.rows.count(i); ++a) {
    const AxisTaps::Tap row = l.rows.tap(i, a);
    const T* line = read + row.place + c;
    const T* weights = filter + row.tap + c;
    for (std::int64_t b = 0; b < l.columns.count(j); ++b) {
      const T* weight = weights + l.columns.tap(j, b).tap;
#pragma GCC unroll 4
      for (int p = 0; p < kPixels; ++p) {
        const T* from = line + l.columns.tap(j + p, b).place;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          sum[p][v] += load_at<V>(from + v * kWidth) * load_at<V>(weight + v * kWidth);
      }
    }
  }
  T* to = made + (i * l.made_w + j) * l.channels + c;
#pragma GCC unroll 4
  for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store_at(to + p * l.channels + v * kWidth, sum[p][v]);
}

template <int kPixels, class T>
void depthwise_pixels(const DepthwiseLoop& l, std::int64_t i, std::int64_t j, const T* read,
                      const T* filter, T* made) {
  constexpr std::int64_t kWidth = kVectorBytes / sizeof(T), kQuarter = 16 / sizeof(T);
  std::int64_t c = 0;
  if constexpr (kVectorBytes == 64)  // and as many more registers
    for (; c + 4 * kWidth <= l.channels; c += 4 * kWidth)
      depthwise_tile<kPixels, 4, Vector<T>>(l, i, j, c, read, filter, made);
  for (; c + 2 * kWidth <= l.channels; c += 2 * kWidth)
    depthwise_tile<kPixels, 2, Vector<T>>(l, i, j, c, read, filter, made);
  for (; c + kWidth <= l.channels; c += kWidth)
    depthwise_tile<kPixels, 1, Vector<T>>(l, i, j, c, read, filter, made);
  if constexpr (kQuarter < kWidth)
    for (; c + kQuarter <= l.channels; c += kQuarter)
      depthwise_tile<kPixels, 1, typename VectorType<T, 16>::type>(l, i, j, c, read, filter, made);
  for (; c < l.channels; ++c) depthwise_tile<kPixels, 1, T>(l, i, j, c, read, filter, made);
}

template <class T>
void depthwise_loop(const KernelContext& c, const DepthwiseLoop& l, const T* read, const T* filter,
                    T* made) {
  const Chunks chunks = row_chunks(l.batch * l.made_h, l.made_w * l.channels);
  c.parallel(chunks.count, [&](std::int64_t chunk) {
    if (c.cancelled()) return;
    for (std::int64_t row = chunks[chunk].begin; row < chunks[chunk].end; ++row) {
      const std::int64_t n = row / l.made_h, i = row % l.made_h;
      const T* image = read + n * l.read_h * l.read_w * l.channels;
      T* out = made + n * l.made_h * l.made_w * l.channels;
      for (std::int64_t j = 0; j < l.made_w;) {
        if (j + 4 <= l.made_w && l.columns.alike(j, 4)) {
          depthwise_pixels<4>(l, i, j, image, filter, out);
          j += 4;
        } else if (j + 2 <= l.made_w && l.columns.alike(j, 2)) {
          depthwise_pixels<2>(l, i, j, image, filter, out);
          j += 2;
        } else {
          depthwise_pixels<1>(l, i, j++, image, filter, out);
        }
      }
    }
  });
}

// Each channel of x as often as it has filters.
template <class T>
Expected<Tensor> repeat_channels(const KernelContext& c, const ConvShape& s, const Tensor& x) {
  const std::int64_t times = s.out_c / s.in_c, elements = x.elements();
  if (times == 1) return x;
  TROUPE_TRY(Shape shape, Shape::make(std::array{s.batch, s.in_h, s.in_w, s.out_c}));
  TROUPE_TRY(Tensor repeated, c.allocate(dtype_of<T>, shape));
  const T* in = x.data<T>();
  T* out = repeated.mutable_data<T>();
  const Chunks chunks = row_chunks(elements, times);
  c.parallel(chunks.count, [&](std::int64_t chunk) {
    for (std::int64_t i = chunks[chunk].begin; i < chunks[chunk].end; ++i)
      std::fill_n(out + i * times, times, in[i]);
  });
  return repeated;
}

// REQUIRES of all three: is_depthwise(s); of the first two: a result that is not empty.
template <class T>
Status depthwise_forward(KernelContext& c, const ConvShape& s, const Tensor& x,
                         const Tensor& filter, T* y) {
  TROUPE_TRY(Tensor read, repeat_channels<T>(c, s, x));
  DepthwiseLoop loop{s.batch, s.out_h, s.out_w, s.in_h, s.in_w, s.out_c, {}, {}};
  TROUPE_TRY(loop.rows, AxisTaps::forward(c, s.out_h, s.in_h, s.filter_h, s.stride_h, s.dilation_h,
                                          s.pad_top, loop.row_steps(s.filter_w)));
  TROUPE_TRY(loop.columns, AxisTaps::forward(c, s.out_w, s.in_w, s.filter_w, s.stride_w,
                                             s.dilation_w, s.pad_left, loop.column_steps()));
  depthwise_loop<T>(c, loop, read.data<T>(), filter.data<T>(), y);
  return ok_status();
}

template <class T>
Status depthwise_backward_data(KernelContext& c, const ConvShape& s, const Tensor& dy,
                               const Tensor& filter, T* dx) {
  const std::int64_t times = s.out_c / s.in_c, elements = s.batch * s.in_h * s.in_w * s.in_c;
  if (times == 0) {
    std::fill_n(dx, elements, T(0));
    return ok_status();
  }
  DepthwiseLoop loop{s.batch, s.in_h, s.in_w, s.out_h, s.out_w, s.out_c, {}, {}};
  TROUPE_TRY(loop.rows, AxisTaps::backward(c, s.in_h, s.out_h, s.filter_h, s.stride_h, s.dilation_h,
                                           s.pad_top, loop.row_steps(s.filter_w)));
  TROUPE_TRY(loop.columns, AxisTaps::backward(c, s.in_w, s.out_w, s.filter_w, s.stride_w,
                                              s.dilation_w, s.pad_left, loop.column_steps()));
  if (times == 1) {
    depthwise_loop<T>(c, loop, dy.data<T>(), filter.data<T>(), dx);
    return ok_status();
  }
  TROUPE_TRY(Shape shape, Shape::make(std::array{s.batch, s.in_h, s.in_w, s.out_c}));
  TROUPE_TRY(Tensor repeated, c.allocate(dtype_of<T>, shape));
  depthwise_loop<T>(c, loop, dy.data<T>(), filter.data<T>(), repeated.mutable_data<T>());
  const T* in = repeated.data<T>();
  const Chunks chunks = row_chunks(elements, times);
  c.parallel(chunks.count, [&](std::int64_t chunk) {
    for (std::int64_t i = chunks[chunk].begin; i < chunks[chunk].end; ++i) {
      T sum = 0;
      for (std::int64_t k = 0; k < times; ++k) sum += in[i * times + k];
      dx[i] = sum;
    }
  });
  return ok_status();
}

// Adds the products of one line of x and one of dy, `n` pixels that are `step` pixels apart in x.
template <class V, class T>
void depthwise_line(const T* x, std::int64_t step, const T* dy, std::int64_t n,
                    std::int64_t channels, T* df) {
  const auto load = [](const T* from) { return load_at<V>(from); };
  V even = {}, odd = {};
  std::int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    even += load(x + i * step * channels) * load(dy + i * channels);
    odd += load(x + (i + 1) * step * channels) * load(dy + (i + 1) * channels);
  }
  if (i < n) even += load(x + i * step * channels) * load(dy + i * channels);
  store_at(df, load(df) + (even + odd));
}

// Partial sums over chunks of images, added by the fixed tree.
template <class T>
Expected<Tensor> depthwise_backward_filter(KernelContext& c, const ConvShape& s, const Tensor& x,
                                           const Tensor& dy) {
  const Shape shape{s.filter_h, s.filter_w, 1, s.out_c};
  const std::int64_t size = shape.elements(), k = s.out_c;
  const Chunks chunks = conv_filter_chunks(s.batch, k, 0).chunks;
  if (size == 0 || dy.elements() == 0 || x.elements() == 0)
    return Tensor::zeros(dtype_of<T>, shape, c.allocator());
  TROUPE_TRY(Tensor repeated, repeat_channels<T>(c, s, x));
  TROUPE_TRY(Shape all, Shape::make(std::array{chunks.count, size}));
  TROUPE_TRY(Tensor partials, c.allocate(dtype_of<T>, all));
  TROUPE_TRY(Tensor df, c.allocate(dtype_of<T>, shape));
  T* sums = partials.mutable_data<T>();
  const auto image = [&](std::int64_t n, T* sum) {
    for (std::int64_t oh = 0; oh < s.out_h; ++oh)
      for (std::int64_t r = 0; r < s.filter_h; ++r) {
        const std::int64_t ih = oh * s.stride_h + r * s.dilation_h - s.pad_top;
        if (ih < 0 || ih >= s.in_h) continue;
        for (std::int64_t q = 0; q < s.filter_w; ++q) {
          // The columns ow whose place ow * stride + shift lies in the image.
          const std::int64_t shift = q * s.dilation_w - s.pad_left;
          const std::int64_t begin = shift >= 0 ? 0 : (-shift + s.stride_w - 1) / s.stride_w;
          const std::int64_t room = s.in_w - 1 - shift;
          const std::int64_t end = room < 0 ? 0 : std::min(s.out_w, room / s.stride_w + 1);
          if (begin >= end) continue;
          const T* from =
              repeated.data<T>() + ((n * s.in_h + ih) * s.in_w + begin * s.stride_w + shift) * k;
          const T* slope = dy.data<T>() + ((n * s.out_h + oh) * s.out_w + begin) * k;
          T* to = sum + (r * s.filter_w + q) * k;
          constexpr std::int64_t kWidth = kVectorBytes / sizeof(T);
          std::int64_t j = 0;
          for (; j + kWidth <= k; j += kWidth)
            depthwise_line<Vector<T>>(from + j, s.stride_w, slope + j, end - begin, k, to + j);
          for (; j < k; ++j)
            depthwise_line<T>(from + j, s.stride_w, slope + j, end - begin, k, to + j);
        }
      }
  };
  c.parallel(chunks.count, [&](std::int64_t chunk) {
    T* sum = sums + chunk * size;
    std::fill_n(sum, size, T(0));
    for (std::int64_t n = chunks[chunk].begin; n < chunks[chunk].end; ++n)
      if (!c.cancelled()) image(n, sum);
  });
  tree_sum(chunks.count, [&](std::int64_t to, std::int64_t from) {
    for (std::int64_t i = 0; i < size; ++i) sums[to * size + i] += sums[from * size + i];
  });
  std::copy_n(sums, size, df.mutable_data<T>());
  return df;
}

}  // namespace troupe
