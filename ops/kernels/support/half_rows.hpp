// Rows of the two 16-bit floats and of f32, each made of the other: rounded to nearest even, as one
// element is (core/dtype.hpp), many at a time. The two rows do not overlap.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace troupe {

void widen_row(const half* from, std::int64_t n, float* to);
void widen_row(const bfloat16* from, std::int64_t n, float* to);
void narrow_row(const float* from, std::int64_t n, half* to);
void narrow_row(const float* from, std::int64_t n, bfloat16* to);

}  // namespace troupe
