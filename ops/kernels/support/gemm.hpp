// Matrix products on plain memory, on the calling thread: of f32 oneDNN's where it is built in, and
// Eigen's where that is the faster; of other floats Eigen's; of integers a loop.
#pragma once

#include <cstdint>

#include "core/status.hpp"

namespace troupe {

// One operand as stored: row-major, `stride` elements from row to row.
template <class T>
struct Matrix {
  T* data;
  std::int64_t stride;
  bool transpose = false;
};

// C = op(A) op(B), or C += it. An empty sum (k = 0) is zero. For float, double, int32_t and
// int64_t.
template <class T>
Status gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
            bool accumulate, Matrix<T> c);

}  // namespace troupe
