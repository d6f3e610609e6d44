// Products of bfloat16 matrices at level v4, summed in f32 and rounded once.
//
// Two elements of k at a time: sum = fma(a0, b0, fma(a1, b1, sum)), where subnormal numbers count
// as 0. AVX512_BF16 has an instruction for that; processors of v4 without it get the same bits from
// two.
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

 private:
  std::int64_t pairs() const { return (k + 1) / 2; }
  // Those pairs of elements of one row of op(A), and of the columns from `first` on of op(B).
  void pairs_of_row(const bfloat16* a, std::int64_t row, std::uint32_t* to) const;
  void pairs_of_columns(const bfloat16* b, std::int64_t first, Range of, std::uint32_t* to) const;
  // Those rows of C, kColumns of it from `first` on. `a` is op(A) in pairs.
  void multiply(const std::uint32_t* a, const bfloat16* b, Range rows, std::int64_t first,
                bfloat16* c) const;
};

}  // namespace troupe
