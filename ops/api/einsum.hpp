// Einstein's summation.
#pragma once

#include <string_view>
#include <vector>

#include "graph/builder.hpp"

namespace troupe {

// Sums of products over named dimensions, as NumPy's einsum: einsum("bij,bjk->bik", {a, b}) is
// batch_mat_mul(a, b), einsum("ij->ji", {a}) a transpose, einsum("i,j->ij", {a, b}) an outer
// product. A letter names a dimension, which is as long wherever it stands; those that do not stand
// behind "->" are summed over. Without "->" the result has the letters that stand once, in
// alphabetical order. "..." stands for leading dimensions that all operands have alike.
//
// Products go through batch_mat_mul: floating dtypes. Several operands are multiplied from left to
// right. The ranks must be known, dimensions need not: if those that only a run knows do not fit,
// it fails. Throws Error: invalid_argument for letters that do not fit the operands, and for one
// that stands twice in an operand (a diagonal).
Output einsum(std::string_view equation, const std::vector<Output>& operands,
              Site site = Site::here());

}  // namespace troupe
