// The sizes of a product of two matrices, on whichever device it runs.
#pragma once

#include <string>

#include "core/tensor.hpp"

namespace troupe::detail {

// op(a) is [m,k], op(b) is [k,n].
struct MatMulSizes {
  std::int64_t m = 0, n = 0, k = 0;
};

// Shapes, known or in part, as text.
inline Status inner_dimensions_differ(const std::string& a, bool transpose_a, const std::string& b,
                                      bool transpose_b) {
  return invalid_argument("inner dimensions differ: a is " + a +
                          (transpose_a ? " transposed" : "") + ", b is " + b +
                          (transpose_b ? " transposed" : ""));
}

inline Expected<MatMulSizes> matmul_sizes(const Shape& a, bool transpose_a, const Shape& b,
                                          bool transpose_b) {
  if (a.rank() != 2 || b.rank() != 2)
    return invalid_argument("MatMul wants matrices, not " + a.text() + " and " + b.text());
  if (b.dim(transpose_b ? 1 : 0) != a.dim(transpose_a ? 0 : 1))
    return inner_dimensions_differ(a.text(), transpose_a, b.text(), transpose_b);
  return MatMulSizes{a.dim(transpose_a ? 1 : 0), b.dim(transpose_b ? 0 : 1),
                     a.dim(transpose_a ? 0 : 1)};
}

}  // namespace troupe::detail
