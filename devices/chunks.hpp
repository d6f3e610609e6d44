// Splits kernels into chunks for Lanes::parallel. Pure functions of shapes, never of the number of
// lanes, the machine or the time, so that results have the same bits everywhere.
//
//   const Chunks chunks = elementwise_chunks(n);
//   ctx.parallel(chunks.count, [&](std::int64_t c) {
//     const Range r = chunks[c];
//     for (std::int64_t i = r.begin; i < r.end; ++i) y[i] = f(x[i]);
//   });
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe {

// Items [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// `total` items split into `count` ranges, in order, none of them empty. Without items there are no
// ranges.
struct Chunks {
  std::int64_t total = 0;
  std::int64_t count = 0;
  std::int64_t step = 0;  // size of every range except the last; 0: even ranges
  std::int64_t unit = 1;  // even ranges begin at multiples of it

  Range operator[](std::int64_t i) const { return {begin(i), begin(i + 1)}; }

  // Ranges of `step` items, the last one perhaps shorter.
  static Chunks of_step(std::int64_t total, std::int64_t step) {
    return {total, (total + step - 1) / step, step, 1};
  }
  // `count` ranges of nearly equal size. When total / count >= n for a multiple n of `unit`, every
  // range has at least n items. REQUIRES: count <= 1 or count * unit <= total.
  static Chunks even(std::int64_t total, std::int64_t count, std::int64_t unit = 1) {
    return {total, total == 0 ? 0 : std::max<std::int64_t>(count, 1), 0, unit};
  }

 private:
  std::int64_t begin(std::int64_t i) const {
    if (i >= count) return total;
    if (step != 0) return i * step;
    // Rounded down, not to the nearest, so that the last range has the least size, too.
    return total * i / count / unit * unit;
  }
};

// 32 Ki elements: 128 KiB of float32, about 10 us of work. Smaller chunks cost too much for fork
// and join; larger ones leave lanes idle on the tensors of a typical layer.
inline constexpr std::int64_t kElementwiseChunk = 32 * 1024;

inline Chunks elementwise_chunks(std::int64_t elements) {
  return Chunks::of_step(elements, kElementwiseChunk);
}

// Whole rows, about as many as an elementwise chunk: softmax, normalisation over the last
// dimension, gathers, sums along rows.
inline Chunks row_chunks(std::int64_t rows, std::int64_t row_elements) {
  return Chunks::of_step(
      rows, std::max<std::int64_t>(1, kElementwiseChunk / std::max<std::int64_t>(1, row_elements)));
}

// A matrix product of m x k by k x n, split along m or n; never along k, whose sums have a fixed
// order.
struct GemmChunks {
  bool by_rows = true;  // ranges of rows (m), else of columns (n)
  Chunks chunks;
};

// At least 12 MFLOP per chunk, or the fork costs more than it saves, and at least 32 rows or 128
// columns, since thin panels are slow (2 rows run at 16 % of full speed). Ranges begin at multiples
// of 8 rows or 16 columns, the inner kernel's tiles. The number of chunks is a power of two,
// because 3 equal chunks on 2 lanes take as long as 4; and at most 32, since each chunk packs the
// other operand again.
inline GemmChunks gemm_chunks(std::int64_t m, std::int64_t n, std::int64_t k) {
  const bool by_rows = m >= n;
  const std::int64_t extent = by_rows ? m : n, least = by_rows ? 32 : 128;
  // In floating point: the product of three dimensions may exceed 64 bits.
  const double megaflops = 2e-6 * double(m) * double(n) * double(k);
  const auto wanted = std::int64_t(std::min(megaflops / 12, double(extent / least)));
  std::int64_t count = 1;
  while (count * 2 <= std::min<std::int64_t>(wanted, 32)) count *= 2;
  if (m == 0 || n == 0) return {by_rows, Chunks{}};
  return {by_rows, Chunks::even(extent, count, by_rows ? 8 : 16)};
}

// Convolution and the gradient of its input: images are independent; 8 of them amortise the setup
// of a primitive and its packed weights.
inline Chunks conv_chunks(std::int64_t images) { return Chunks::of_step(images, 8); }

// Gradient of a convolution's weights: each chunk of images makes a partial sum as large as the
// weights, added by tree_sum. Hence at most 8 chunks (of at least 8 images). Weights above 4 MiB
// are split by output channel instead, which needs no sums.
struct ConvFilterChunks {
  bool by_channels = false;  // ranges of output channels, else of images
  Chunks chunks;
};
inline ConvFilterChunks conv_filter_chunks(std::int64_t images, std::int64_t out_channels,
                                           std::int64_t weight_bytes) {
  if (weight_bytes > 4 * 1024 * 1024)
    return {true, Chunks::even(out_channels, std::clamp<std::int64_t>(out_channels / 16, 1, 8),
                               out_channels >= 16 ? 16 : 1)};
  return {false, Chunks::of_step(images, std::max<std::int64_t>(8, (images + 7) / 8))};
}

// Sums: leaves of 4 Ki elements, each summed in a fixed order, then a binary tree over the leaves.
// The error grows with the logarithm of the length, and any lane may sum any leaf. A chunk is 8
// leaves.
inline constexpr std::int64_t kSumLeaf = 4 * 1024;
inline constexpr std::int64_t kLeavesPerChunk = 8;

inline Chunks sum_leaves(std::int64_t elements) { return Chunks::of_step(elements, kSumLeaf); }
// Ranges of leaves.
inline Chunks sum_chunks(std::int64_t leaves) { return Chunks::of_step(leaves, kLeavesPerChunk); }

// Leaves of a sum over rows (bias gradients, statistics per channel): blocks of whole rows, each
// with one partial row. Few, because every partial row must be written and read again.
inline Chunks column_sum_leaves(std::int64_t rows, std::int64_t columns) {
  const std::int64_t by_size = kElementwiseChunk / std::max<std::int64_t>(1, columns);
  return Chunks::of_step(rows, std::max<std::int64_t>({1, by_size, (rows + 31) / 32}));
}

// Columns of partial rows that one lane combines: a few microseconds of work.
inline Chunks tree_columns(std::int64_t columns) { return Chunks::of_step(columns, 512); }

// Combines partials 0 .. count - 1 into the first, in the fixed binary tree:
// ((0 1)(2 3))((4 5)..). `add(i, j)` does partial[i] += partial[j].
template <class Add>
void tree_sum(std::int64_t count, Add&& add) {
  for (std::int64_t stride = 1; stride < count; stride *= 2)
    for (std::int64_t i = 0; i + stride < count; i += 2 * stride) add(i, i + stride);
}

}  // namespace troupe
