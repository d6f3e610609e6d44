// Convolution as matrix products, for one image at a time: patches of the input are laid out as
// rows ("columns" by tradition) in tiles that fit the second-level cache.
//
//   x [h,w,c]  --im2col-->  patches [out pixels of the tile, filter_h*filter_w*c]
//   y tile     = patches  * filter [filter_h*filter_w*c, k]
//   dfilter   += patches^T * dy tile
//   dx        += col2im(dy tile * filter^T)
#pragma once

#include <algorithm>
#include <cstdint>

#include "devices/chunks.hpp"
#include "ops/kernels/support/gemm.hpp"
#include "ops/onednn/onednn.hpp"

namespace troupe {

using ConvShape = onednn::ConvShape;

// What each group of channels is by itself.
inline ConvShape one_group(ConvShape s) {
  s.in_c /= s.groups;
  s.out_c /= s.groups;
  s.groups = 1;
  return s;
}

inline std::int64_t patch_size(const ConvShape& s) {
  return s.filter_h * s.filter_w * (s.in_c / s.groups);
}

// A filter of one pixel at stride 1: patches are the input itself.
inline bool is_pointwise(const ConvShape& s) {
  return s.groups == 1 && s.filter_h == 1 && s.filter_w == 1 && s.stride_h == 1 &&
         s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 && s.pad_bottom == 0 &&
         s.pad_right == 0;
}

// Output rows whose patches take at most 512 KiB, at least one.
template <class T>
std::int64_t tile_rows(const ConvShape& s) {
  const double row_bytes = double(s.out_w) * double(patch_size(s)) * sizeof(T);
  return std::clamp<std::int64_t>(std::int64_t(512 * 1024 / std::max(row_bytes, 1.0)), 1,
                                  std::max<std::int64_t>(s.out_h, 1));
}

// Calls `span(patch offset, image offset, elements)` for every run of elements that a patch and
// the image share, and `gap(patch offset, elements)` for runs of padding. Rows [begin, end) of y.
template <class Span, class Gap>
void for_patches(const ConvShape& s, std::int64_t begin, std::int64_t end, Span&& span, Gap&& gap) {
  const std::int64_t line = s.filter_w * s.in_c;
  std::int64_t at = 0;
  for (std::int64_t oh = begin; oh < end; ++oh)
    for (std::int64_t ow = 0; ow < s.out_w; ++ow)
      for (std::int64_t r = 0; r < s.filter_h; ++r, at += line) {
        const std::int64_t ih = oh * s.stride_h + r * s.dilation_h - s.pad_top;
        if (ih < 0 || ih >= s.in_h) {
          gap(at, line);
          continue;
        }
        const std::int64_t iw = ow * s.stride_w - s.pad_left, row = ih * s.in_w;
        if (s.dilation_w == 1) {  // the line is one run, cut at the borders
          const std::int64_t first = std::clamp<std::int64_t>(-iw, 0, s.filter_w);
          const std::int64_t last = std::clamp<std::int64_t>(s.in_w - iw, first, s.filter_w);
          gap(at, first * s.in_c);
          span(at + first * s.in_c, (row + iw + first) * s.in_c, (last - first) * s.in_c);
          gap(at + last * s.in_c, (s.filter_w - last) * s.in_c);
          continue;
        }
        for (std::int64_t q = 0; q < s.filter_w; ++q) {
          const std::int64_t column = iw + q * s.dilation_w;
          if (column < 0 || column >= s.in_w)
            gap(at + q * s.in_c, s.in_c);
          else
            span(at + q * s.in_c, (row + column) * s.in_c, s.in_c);
        }
      }
}

template <class T>
void im2col(const ConvShape& s, std::int64_t begin, std::int64_t end, const T* x, T* patches) {
  for_patches(
      s, begin, end,
      [&](std::int64_t to, std::int64_t from, std::int64_t n) {
        std::copy_n(x + from, n, patches + to);
      },
      [&](std::int64_t to, std::int64_t n) { std::fill_n(patches + to, n, T(0)); });
}

template <class T>
void col2im(const ConvShape& s, std::int64_t begin, std::int64_t end, const T* patches, T* dx) {
  for_patches(
      s, begin, end,
      [&](std::int64_t from, std::int64_t to, std::int64_t n) {
        const T* __restrict in = patches + from;
        T* __restrict out = dx + to;
        for (std::int64_t i = 0; i < n; ++i) out[i] += in[i];
      },
      [](std::int64_t, std::int64_t) {});
}

// Calls `tile(first row, end row, pixels before it, pixels)` over one image's output.
template <class T, class F>
Status for_tiles(const ConvShape& s, F&& tile) {
  const std::int64_t rows = tile_rows<T>(s);
  for (std::int64_t begin = 0; begin < s.out_h; begin += rows) {
    const std::int64_t end = std::min(begin + rows, s.out_h);
    TROUPE_TRY(tile(begin, end, begin * s.out_w, (end - begin) * s.out_w));
  }
  return ok_status();
}

// The three directions for one image and one group; `patches` holds tile_rows * out_w * patch_size
// elements. Pixels of y and rows of the filter are `row` elements apart: out_c of all groups.
template <class T>
Status group_forward(const ConvShape& s, const T* x, const T* filter, T* y, std::int64_t row,
                     T* patches) {
  const std::int64_t depth = patch_size(s);
  return for_tiles<T>(s, [&](auto begin, auto end, auto before, auto pixels) {
    im2col(s, begin, end, x, patches);
    return gemm<T>(pixels, s.out_c, depth, {patches, depth}, {filter, row}, false,
                   {y + before * row, row});
  });
}

template <class T>
Status group_backward_data(const ConvShape& s, const T* dy, const T* filter, T* dx,
                           std::int64_t row, T* patches) {
  const std::int64_t depth = patch_size(s);
  std::fill_n(dx, s.in_h * s.in_w * s.in_c, T(0));
  return for_tiles<T>(s, [&](auto begin, auto end, auto before, auto pixels) {
    TROUPE_TRY(gemm<T>(pixels, depth, s.out_c, {dy + before * row, row}, {filter, row, true}, false,
                       {patches, depth}));
    col2im(s, begin, end, patches, dx);
    return ok_status();
  });
}

// Adds to output channels [first, first + channels) of dfilter, whose rows are `out.stride` apart.
template <class T>
Status group_backward_filter(const ConvShape& s, const T* x, const T* dy, std::int64_t row,
                             std::int64_t first, std::int64_t channels, Matrix<T> out, T* patches) {
  const std::int64_t depth = patch_size(s);
  return for_tiles<T>(s, [&](auto begin, auto end, auto before, auto pixels) {
    im2col(s, begin, end, x, patches);
    return gemm<T>(depth, channels, pixels, {patches, depth, true},
                   {dy + before * row + first, row}, true, out);
  });
}

template <class T>
void copy_columns(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                  std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(from + i * from_stride, columns, to + i * to_stride);
}

// What one image in one direction needs, in elements: patches and, of several groups, the channels
// of one.
template <class T>
std::int64_t scratch_elements(const ConvShape& s) {
  const std::int64_t patches = tile_rows<T>(s) * s.out_w * patch_size(s);
  return patches + (s.groups == 1 ? 0 : s.in_h * s.in_w * (s.in_c / s.groups));
}
// Calls group(g, scratch of its image); the patches come first.
template <class T, class F>
Status for_groups(const ConvShape& s, T* scratch, F&& group) {
  T* const image = scratch + tile_rows<T>(s) * s.out_w * patch_size(s);
  for (std::int64_t g = 0; g < s.groups; ++g) TROUPE_TRY(group(g, image));
  return ok_status();
}

// The three directions for one image, with all its groups.
template <class T>
Status image_forward(const ConvShape& s, const T* x, const T* filter, T* y, T* scratch) {
  if (s.groups == 1) return group_forward(s, x, filter, y, s.out_c, scratch);
  const ConvShape one = one_group(s);
  return for_groups(s, scratch, [&](std::int64_t g, T* image) {
    copy_columns(x + g * one.in_c, s.in_c, image, one.in_c, s.in_h * s.in_w, one.in_c);
    return group_forward<T>(one, image, filter + g * one.out_c, y + g * one.out_c, s.out_c,
                            scratch);
  });
}

template <class T>
Status image_backward_data(const ConvShape& s, const T* dy, const T* filter, T* dx, T* scratch) {
  if (s.groups == 1) return group_backward_data(s, dy, filter, dx, s.out_c, scratch);
  const ConvShape one = one_group(s);
  return for_groups(s, scratch, [&](std::int64_t g, T* image) {
    TROUPE_TRY(group_backward_data<T>(one, dy + g * one.out_c, filter + g * one.out_c, image,
                                      s.out_c, scratch));
    copy_columns<T>(image, one.in_c, dx + g * one.in_c, s.in_c, s.in_h * s.in_w, one.in_c);
    return ok_status();
  });
}

// Adds to output channels [first, first + channels) of dfilter, whose rows are `out.stride` apart;
// to all of several groups.
template <class T>
Status image_backward_filter(const ConvShape& s, const T* x, const T* dy, std::int64_t first,
                             std::int64_t channels, Matrix<T> out, T* scratch) {
  if (s.groups == 1) return group_backward_filter(s, x, dy, s.out_c, first, channels, out, scratch);
  const ConvShape one = one_group(s);
  return for_groups(s, scratch, [&](std::int64_t g, T* image) {
    copy_columns(x + g * one.in_c, s.in_c, image, one.in_c, s.in_h * s.in_w, one.in_c);
    return group_backward_filter<T>(one, image, dy, s.out_c, g * one.out_c, one.out_c,
                                    {out.data + g * one.out_c, out.stride}, scratch);
  });
}

}  // namespace troupe
