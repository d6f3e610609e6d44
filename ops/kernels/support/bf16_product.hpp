// Products of bfloat16 matrices at the levels v4 and v4-amx, summed in f32 and rounded once.
//
// At v4, two elements of k at a time: sum = fma(a0, b0, fma(a1, b1, sum)). AVX512_BF16 has an
// instruction for that; processors of v4 without it get the same bits from two. At v4-amx, 32
// elements of k at a time, as AMX has it (bf16_tiles.hpp). Subnormal numbers count as 0, and there
// is one NaN.
#pragma once

#include "core/dtype.hpp"
#include "devices/chunks.hpp"
#include "ops/op.hpp"

namespace troupe {

// Whether this level has them. The others multiply in f32.
#if defined(__AVX512F__)
inline constexpr bool kMultipliesBf16 = true;
#else
inline constexpr bool kMultipliesBf16 = false;
#endif

// C [m,n] = op(A) [m,k] op(B) [k,n].
struct Bf16Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;

  // On all lanes, or `alone` on the calling thread.
  Status run(const KernelContext& c, const bfloat16* a, const bfloat16* b, bfloat16* product,
             bool alone) const;
};

}  // namespace troupe
