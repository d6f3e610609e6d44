// Triangular factors of one matrix, row by row in memory: solved and found in blocks, whose
// products are those of support/gemm.hpp. Pure functions, for float and double.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// An n x n triangle, of which the other half is not read.
template <class T>
struct Triangle {
  const T* data = nullptr;
  std::int64_t n = 0, stride = 0;
  bool lower = true;
  bool transpose = false;      // solve with the transposed matrix
  bool unit_diagonal = false;  // which is then not read either
};
// b = triangle^-1 b, b of `columns` columns. A zero on the diagonal divides as such.
template <class T>
Status solve_triangle(const Triangle<T>& a, T* b, std::int64_t columns, std::int64_t stride);

// a becomes L of a = L L^T, with zeros above the diagonal; only the lower half of a is read. False
// where a pivot is not positive.
template <class T>
Expected<bool> cholesky_factor(T* a, std::int64_t n);

// a becomes L (below the diagonal, of diagonal 1) and U of P a = L U. Row i was exchanged with
// row swaps[i] in step i.
struct LuFactor {
  std::vector<std::int64_t> swaps;
  bool odd = false;       // an odd permutation
  bool singular = false;  // a pivot is 0
};
template <class T>
Expected<LuFactor> lu_factor(T* a, std::int64_t n);
// b = a^-1 b, or a^-T b. REQUIRES: not singular.
template <class T>
Status lu_solve(const T* factors, const LuFactor& lu, std::int64_t n, bool transpose, T* b,
                std::int64_t columns);

}  // namespace troupe
