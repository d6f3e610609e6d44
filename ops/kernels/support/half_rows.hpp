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

inline bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
// The same of rows whose type, f16 or bf16, is known at run time.
void widen_row(DType from, const void* x, std::int64_t n, float* to);
void narrow_row(const float* from, std::int64_t n, DType to, void* y);

}  // namespace troupe
