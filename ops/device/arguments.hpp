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

}  // namespace troupe::device
