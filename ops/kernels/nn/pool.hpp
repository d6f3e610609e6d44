// Pools over NHWC images: windows over height and width, each channel on its own. Loops run over
// channels innermost, which is contiguous memory, in blocks that stay in registers or L1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "devices/chunks.hpp"
#include "ops/kernels/nn/window.hpp"
#include "ops/kernels/support/inline.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/op.hpp"

namespace troupe {

struct PoolShape {
  std::int64_t batch = 0, channels = 0;
  WindowAxis h, w;
};

inline Expected<PoolShape> pool_shape(const WindowAttrs& attrs, const Shape& x) {
  if (x.rank() != 4) return invalid_argument("a pool wants x [n,h,w,c], not " + x.text());
  PoolShape p{x[0], x[3], {}, {}};
  TROUPE_TRY(p.h, window_axis(attrs, 0, x[1], attrs.size[0]));
  TROUPE_TRY(p.w, window_axis(attrs, 1, x[2], attrs.size[1]));
  TROUPE_TRY(Shape::make(std::array{x[0], p.h.out, p.w.out, x[3]}));
  return p;
}

inline Shape pooled_shape(const PoolShape& p) { return {p.batch, p.h.out, p.w.out, p.channels}; }

// The part of a window that lies inside the image, on one axis.
inline Range window_range(const WindowAxis& a, std::int64_t out) {
  const std::int64_t begin = out * a.stride - a.pad_before;
  return {std::max<std::int64_t>(begin, 0), std::min(begin + a.size, a.in)};
}

// Chunks of whole images (gradients add up only within one).
inline Chunks pool_chunks(const PoolShape& p) {
  return row_chunks(p.batch, p.h.in * p.w.in * p.channels);
}

// For each window of image `n`: window(offset of its y, rows, columns), offsets in elements.
template <class F>
void for_windows(const PoolShape& p, std::int64_t n, F&& window) {
  for (std::int64_t oh = 0; oh < p.h.out; ++oh)
    for (std::int64_t ow = 0; ow < p.w.out; ++ow)
      window(((n * p.h.out + oh) * p.w.out + ow) * p.channels, window_range(p.h, oh),
             window_range(p.w, ow));
}

// Offset of channel 0 of a pixel of image `n`.
inline std::int64_t pixel(const PoolShape& p, std::int64_t n, std::int64_t ih, std::int64_t iw) {
  return ((n * p.h.in + ih) * p.w.in + iw) * p.channels;
}

// Calls f(first channel, std::integral_constant<int, width>) over the channels in blocks of a
// width the compiler knows, so that a block's accumulators are registers; then one by one.
template <class T, class F>
void for_channel_blocks(std::int64_t channels, F&& f) {
  constexpr int kBlock = 128 / sizeof(T);
  std::int64_t c = 0;
  for (; c + kBlock <= channels; c += kBlock) f(c, std::integral_constant<int, kBlock>());
  for (; c + 8 <= channels; c += 8) f(c, std::integral_constant<int, 8>());
  for (; c < channels; ++c) f(c, std::integral_constant<int, 1>());
}

// Some channels of one window.
struct PoolBlock {
  std::int64_t n;       // the image
  Range rows, columns;  // of its pixels
  std::int64_t first;   // channel
  std::int64_t y;       // offset of the first channel's y, in elements
};

// What every pool does, in chunks of images on the lanes: begin(n) once for image `n`, then
// f(PoolBlock, std::integral_constant<int, channels>) for the blocks of its windows.
template <class T, class Begin, class F>
void for_pool_blocks(const KernelContext& c, const PoolShape& p, Begin&& begin, F&& f) {
  // Of images without elements there may be any number.
  if (p.channels == 0 || (p.h.in * p.w.in == 0 && p.h.out * p.w.out == 0)) return;
  const Chunks chunks = pool_chunks(p);
  c.parallel(chunks.count, [&](std::int64_t i) {
    if (c.cancelled()) return;
    for (std::int64_t n = chunks[i].begin; n < chunks[i].end; ++n) {
      begin(n);
      for_windows(p, n, [&](std::int64_t y, Range rows, Range columns) {
        for_channel_blocks<T>(p.channels, [&](std::int64_t first, auto width) {
          f(PoolBlock{n, rows, columns, first, y + first}, width);
        });
      });
    }
  });
}
template <class T, class F>
void for_pool_blocks(const KernelContext& c, const PoolShape& p, F&& f) {
  auto nothing = [](std::int64_t) {};
  for_pool_blocks<T>(c, p, nothing, f);
}

// The same for a gradient, which adds up in `dx`: that is zero first.
template <class T, class F>
void for_pool_gradient_blocks(const KernelContext& c, const PoolShape& p, T* dx, F&& f) {
  const std::int64_t image = p.h.in * p.w.in * p.channels;
  auto clear = [=](std::int64_t n) { std::fill_n(dx + n * image, image, T(0)); };
  for_pool_blocks<T>(c, p, clear, f);
}

// A pool of x: Window::block<channels>(p, block, x, y) makes some channels of one of its windows.
template <class T, class Window>
class Pool final : public Kernel {
 public:
  explicit Pool(const WindowAttrs& window) : window_(window) {}

  Status compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    TROUPE_TRY(PoolShape p, pool_shape(window_, x.shape()));
    TROUPE_TRY(Tensor y, c.allocate(dtype_of<T>, pooled_shape(p)));
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for_pool_blocks<T>(c, p, [&](const PoolBlock& b, auto width) {
      Window::template block<width.value>(p, b, in, out);
    });
    c.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  const WindowAttrs window_;
};

inline Status pool_output_shape(InferenceContext& c, int input, int output) {
  TROUPE_TRY(c.want_rank(input, 4));
  TROUPE_TRY(WindowAttrs w, read_window(c, true));
  const PartialShape& x = c.shape(input);
  PartialShape y = PartialShape::unknown_of_rank(4);
  if (x.known_rank()) {
    y = PartialShape{x[0], PartialShape::kUnknown, PartialShape::kUnknown, x[3]};
    for (int axis = 0; axis < 2; ++axis) {
      TROUPE_TRY(std::int64_t out, window_out(w, axis, x[axis + 1], w.size[std::size_t(axis)]));
      y.set_dim(axis + 1, out);
    }
  }
  c.set(output, std::move(y));
  return ok_status();
}

inline AttrMap pool_attrs(GradContext& c) {
  AttrMap attrs;
  for (const char* name : {"ksize", "strides", "padding", "explicit_paddings"})
    attrs.emplace(name, c.node().attrs.find(name)->second);
  return attrs;
}

inline const std::vector<std::string>& pool_attr_specs() {
  static const std::vector<std::string> specs = {"ksize: list(int)", "strides: list(int)",
                                                 "padding: string {SAME VALID EXPLICIT} = VALID",
                                                 "explicit_paddings: list(int) = []"};
  return specs;
}

}  // namespace troupe
