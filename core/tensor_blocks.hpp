// Parts of tensors in host memory, copied into larger ones.
#pragma once

#include <cstdint>

#include "core/tensor.hpp"

namespace troupe {

// Copies `n` elements from element `at` of one tensor to element `to` of another. REQUIRES: one
// dtype, whose elements are strings or bytes; both ranges exist.
void copy_elements(const Tensor& from, std::int64_t at, Tensor& into, std::int64_t to,
                   std::int64_t n);

// Copies `from` into row `row` of `into`, at the beginning of each dimension. REQUIRES: one dtype;
// `into` has one dimension more, in front, and the others are at least as long as those of `from`.
void copy_block(const Tensor& from, Tensor& into, std::int64_t row);

}  // namespace troupe
