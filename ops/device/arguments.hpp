// The arguments of device kernels: plain data that host code fills and device code reads.
#pragma once

#include <cstdint>

namespace troupe::device {

inline constexpr int kMostDims = 8;

// Where the elements of N inputs are that belong to output element o: o is a place in `rank`
// dimensions, the last of which varies fastest. A stride is in elements, 0 along a dimension in
// which the input does not vary.
template <int N>
struct Walk {
  int rank;
  std::int64_t dims[kMostDims];
  std::int64_t strides[N][kMostDims];
};

// out[o] = f(in[0][...], ...) for o in [0, n).
template <int N>
struct ElementwiseArgs {
  const void* in[N];
  void* out;
  std::int64_t n;
  Walk<N> walk;
};

struct RepeatScaledArgs {
  ElementwiseArgs<1> moved;
  double scale;
};

// to[second places] = from[first places], for n elements.
struct MoveArgs {
  const void* from;
  void* to;
  std::int64_t n;
  Walk<2> walk;
};
struct FillArgs {
  void* to;
  std::int64_t n;
  double value;
};

// What a block adds up may be a part of a sum: n numbers, or rows, are cut into `count` parts, of
// `each` numbers but for the last one.
struct Parts {
  std::int64_t count = 1, each = 0x7fffffffffffffff;
};

// x is [outer, n, inner], y is [outer, parts, inner]. What y has is finished, as of `of` numbers,
// and rounded; or as it is computed, where it is to be joined with others.
struct ReduceArgs {
  const void* x;
  void* y;
  std::int64_t outer, n, inner;
  Parts parts = {};
  std::int64_t of = 0;
  bool unfinished = false;
};

inline constexpr int kMatMulTile = 64;  // rows and columns of y that a block makes

// `count` products y of [m, n], of op(a) of [m, k] and op(b) of [k, n], whose strides are in
// elements. `walk` says by the number of a product which matrices of a and b it is of.
struct MatMulArgs {
  const void* a;
  const void* b;
  void* y;
  std::int64_t m, n, k;
  std::int64_t a_row, a_column, b_row, b_column;
  std::int64_t count;
  Walk<2> walk;
};

struct ConvAxis {
  std::int64_t in, out, size, stride, dilation, before;
};
// x is [images, h.in, w.in, in], y [images, h.out, w.out, out], the filter [h.size, w.size, in /
// groups, out]. `to` is the one of them that is made.
struct ConvArgs {
  const void* x;
  const void* filter;
  const void* dy;
  void* to;
  std::int64_t images, in, out, groups;
  ConvAxis h, w;
  // Of a sum over pixels: into so many parts it is cut, each of so many pixels; `to` has them all.
  std::int64_t parts, part;
};

// Around dimension `axis`: x is [outer, size, inner], y is [outer, n, inner].
struct TakeRowsArgs {
  const void* x;
  const void* indices;
  void* y;
  std::int64_t outer, size, n, inner;
};
// x is [outer, n, inner], y is [outer, size, inner]. `groups` are i64: the places that rows belong
// to; where the row numbers of each begin, and end; the row numbers, those of a place together.
struct FoldRowsArgs {
  const void* x;
  const void* groups;
  void* y;
  std::int64_t groups_count, outer, size, n, inner;
  double nothing;  // of a place without rows, where y is not read: of floats, and of integers
  std::int64_t no_integer;
};

// to[i] = start + i * delta: of floats, and of integers.
struct RangeArgs {
  void* to;
  std::int64_t n;
  double start, delta;
  std::uint64_t first, step;
};

struct OneHotArgs {
  const void* indices;
  void* y;
  std::int64_t n, depth;
  double on, off;
};

inline constexpr int kMostAdded = 32;
struct AddNArgs {
  const void* in[kMostAdded];
  const void* begun;
  void* unfinished;
  void* y;
  std::int64_t n;
  int count;
};

struct PoolAxis {
  std::int64_t in, out, size, stride, before;
};
// `to` has `elements`: those of y, or of x where it is a gradient.
struct PoolArgs {
  const void* x;
  const void* y;
  const void* from;
  void* to;
  std::int64_t elements, channels;
  PoolAxis h, w;
};

// Numbers of a law: inside of [least, most], what is drawn is (shift + scale * z) * times.
struct DrawArgs {
  void* y;
  std::int64_t n;
  std::uint64_t key, run;
  double shift, scale, times, least, most;
};
struct DrawIntArgs {
  void* y;
  std::int64_t n;
  std::uint64_t key, run, low, span;
};

// Rows of n elements; what is known of a row or column is written to `moments`, `kMoments` each.
inline constexpr int kMoments = 3;  // a factor, the mean, the inverse of the deviation
struct LayerNormArgs {
  const void* x;
  const void* dy;
  const void* scale;
  const void* offset;
  void* moments;
  void* y;  // or dx
  void* dscale;
  void* doffset;
  std::int64_t rows, n;
  double epsilon;
  Parts parts = {};  // of rows; of several, `sums` are [2, parts, n]: those of scales and offsets
  void* sums = nullptr;
};
// x is [images, positions, channels]: so many rows of n channels, which are `groups` of `in_group`
// each.
struct GroupNormArgs : LayerNormArgs {
  std::int64_t images, positions, groups, in_group;
};
struct BatchNormArgs {
  const void* x;
  const void* dy;
  const void* scale;
  const void* offset;
  const void* mean_in;
  const void* variance_in;
  const void* dmean;
  const void* dvariance;
  const void* dinv_std;
  void* mean;
  void* variance;
  void* inv_std;
  void* by;
  void* y;  // or dx
  void* dscale;
  void* doffset;
  std::int64_t rows, n;
  double epsilon;
  bool training;
  Parts parts = {};  // of rows; of several, `sums` are [kMoments, parts, n] or [2, parts, n]
  void* sums = nullptr;
};

// Lines of n elements, in x and y [outer, n, inner].
struct ScanArgs {
  const void* factors;  // of a recurrence
  const void* x;
  void* y;
  std::int64_t outer, n, inner;
  bool reverse, exclusive, behind;
};

inline constexpr int kMostScalars = 5, kMostValues = 4;

struct UpdateArgs {
  const void* old_values[kMostValues];
  void* new_values[kMostValues];
  const void* gradient;
  const void* scalars[kMostScalars];
  const void* step;  // how many there were; null: not counted
  void* new_step;
  std::int64_t n;
};

// `rows` examples of n units; four gates of each unit in x, r, gates and slopes, each gate n
// elements after the one before.
struct LstmArgs {
  const void* x;
  const void* r;
  const void* c;
  void* gates;
  void* h;
  void* next;
  std::int64_t rows, n;
};
struct LstmGradArgs {
  const void* dh;
  const void* more_dh;  // added to it; null: nothing
  const void* dnext;
  const void* more_dnext;
  const void* gates;
  const void* c;
  const void* next;
  void* slopes;
  void* dc;
  std::int64_t rows, n;
};

// Of some rows of variables, `inner` elements each: update.gradient has what belongs to them, and
// `groups` says to which places (FoldRowsArgs).
struct UpdateRowsArgs {
  UpdateArgs update;
  const void* groups;
  std::int64_t groups_count, inner;
};
// `sums` are f64: of each block, the squares of the variable and of its move; then the rate.
struct LambArgs {
  UpdateArgs update;
  void* sums;
  std::int64_t blocks;
};

// Rows of n elements.
struct RowsArgs {
  const void* x;
  const void* other;  // what the row function takes beside x
  void* y;
  void* loss;  // one element for each row
  std::int64_t rows, n;
};

// A mask over [outer, inner, queries, keys], of bytes; null: none. A stride is in elements, 0 along
// what it does not vary with. Causal: query i may look at keys 0 to i.
struct AttentionMaskArgs {
  const void* mask;
  std::int64_t of_outer, of_inner, of_query, of_key;
  std::int64_t inner, queries, keys;
  int causal;
};
// A row of scores for each query of each problem: products, which become weights. With slopes,
// which are the gradients of weights and become those of products, the stats are read, else
// written. y and dy have `out` elements for each query.
struct AttentionRowsArgs {
  void* scores;
  void* slopes;
  void* stats;
  const void *y, *dy;
  AttentionMaskArgs open;
  std::int64_t rows, out;
  double scale;
};
// What is added to scores, of `rows` queries of all problems among which the mask differs: 0, or
// `never`. `closed` tells, as bytes, which of them may not look anywhere.
struct AttentionBiasArgs {
  void* bias;
  void* closed;
  AttentionMaskArgs open;
  std::int64_t rows;
  double never;
};
// Rows of y, of `out` elements, and stats are 0 where a query is closed.
struct AttentionCloseArgs {
  void* y;
  void* stats;
  const void* closed;
  std::int64_t rows, queries, inner, out;
  std::int64_t of_outer, of_inner;  // strides of `closed`
};

}  // namespace troupe::device
