// Products of matrices of 16-bit floats at the levels v4 and v4-amx, summed in f32 and rounded
// once. There is one NaN.
//
// f16 is multiplied as f32, one element of k after another: sum = fma(a0, b0, sum). bf16, at v4,
// two at a time: sum = fma(a0, b0, fma(a1, b1, sum)). AVX512_BF16 has an instruction for that;
// processors of v4 without it get the same bits from two. At v4-amx, 32 at a time, as AMX has it
// (bf16_tiles.hpp). Subnormal numbers of bf16 count as 0.
#pragma once

#include "core/dtype.hpp"
#include "ops/kernels/support/through_float.hpp"
#include "ops/op.hpp"

namespace troupe {

// C [m,n] = op(A) [m,k] op(B) [k,n] of half or bfloat16.
template <class T>
struct HalfProduct {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;

  // On all lanes, or `alone` on the calling thread.
  Status run(const KernelContext& c, const T* a, const T* b, T* product, bool alone) const;
};

// The factory for f16 and bf16, of a kernel class that uses HalfProduct or, at levels without it,
// of that class for f32.
template <template <class> class K>
Expected<std::unique_ptr<Kernel>> half_product_kernel(const KernelSpec& spec) {
#if defined(__AVX512F__)
  if (spec.type() == DType::f16) return std::unique_ptr<Kernel>(new K<half>(spec));
  return std::unique_ptr<Kernel>(new K<bfloat16>(spec));
#else
  return through_float<K<float>>(spec);
#endif
}

}  // namespace troupe
