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

// x is [outer, n, inner], y is [outer, inner].
struct ReduceArgs {
  const void* x;
  void* y;
  std::int64_t outer, n, inner;
};
struct ReduceWalkArgs {
  const void* x;
  void* y;
  std::int64_t outputs, n;
  Walk<1> kept, reduced;
};

inline constexpr int kMatMulTile = 64;  // rows and columns of y that a block makes

// y is [m, n], of op(a) of [m, k] and op(b) of [k, n], whose strides are in elements.
struct MatMulArgs {
  const void* a;
  const void* b;
  void* y;
  std::int64_t m, n, k;
  std::int64_t a_row, a_column, b_row, b_column;
};

inline constexpr int kMostScalars = 5;

struct UpdateArgs {
  const void* old_values[3];
  void* new_values[3];
  const void* gradient;
  const void* scalars[kMostScalars];
  const void* step;  // how many there were; null: not counted
  void* new_step;
  std::int64_t n;
};

// Rows of n elements.
struct RowsArgs {
  const void* x;
  const void* other;  // what the row function takes beside x
  void* y;
  void* loss;  // one element for each row
  std::int64_t rows, n;
};

}  // namespace troupe::device
