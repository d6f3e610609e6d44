#include "ops/kernels/support/half_rows.hpp"

#include <immintrin.h>

#include <bit>

namespace troupe {
namespace {

// Without branches, so that loops of them vectorise.
inline float widened(half x) {
  const std::uint32_t size = x.bits & 0x7fffu, sign = std::uint32_t{x.bits & 0x8000u} << 16;
  const std::uint32_t normal = (size << 13) + (size < 0x7c00 ? 112u << 23 : 224u << 23);
  const float subnormal = std::bit_cast<float>(size | std::bit_cast<std::uint32_t>(0.5f)) - 0.5f;
  return std::bit_cast<float>(sign |
                              (size < 0x400 ? std::bit_cast<std::uint32_t>(subnormal) : normal));
}
inline std::uint16_t narrowed(float x) {
  constexpr std::uint32_t kInf = 0x7f800000, kNormal = 0x38800000, kBeyond = 0x477ff000;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), size = bits & 0x7fffffff;
  const std::uint32_t odd = size >> 13 & 1, normal = (size - (112u << 23) + 0xfff + odd) >> 13;
  // The last bit of a sum with 1/2 is the last bit of a subnormal half.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) -
                                  std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t nan = 0x7e00 | (size >> 13 & 0x3ff);
  const std::uint32_t finite = size < kNormal ? subnormal : normal;
  return std::uint16_t(bits >> 16 & 0x8000) | std::uint16_t(size > kInf       ? nan
                                                            : size >= kBeyond ? 0x7c00
                                                                              : finite);
}
inline std::uint16_t narrowed_bfloat16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return std::uint16_t((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

}  // namespace

void widen_row(const half* from, std::int64_t n, float* to) {
  std::int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
  for (; i < n; ++i) to[i] = widened(from[i]);
}

void narrow_row(const float* from, std::int64_t n, half* to) {
  std::int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) to[i].bits = narrowed(from[i]);
}

void widen_row(const bfloat16* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
}

void narrow_row(const float* from, std::int64_t n, bfloat16* to) {
  std::int64_t i = 0;
#if defined(__AVX512BW__)
  const auto rounded = [](__m512 x) {  // in the higher half of each
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  };
  alignas(64) std::uint16_t halves[32];
  for (std::uint16_t k = 0; k < 32; ++k) halves[k] = std::uint16_t(2 * k + 1);
  const __m512i higher = _mm512_load_si512(halves);
  for (; i + 32 <= n; i += 32) {
    const __m512 low = _mm512_loadu_ps(from + i), high = _mm512_loadu_ps(from + i + 16);
    if (_mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q) != 0) {  // NaN in either
      for (std::int64_t j = i; j < i + 32; ++j) to[j].bits = narrowed_bfloat16(from[j]);
      continue;
    }
    _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(rounded(low), higher, rounded(high)));
  }
#elif defined(__AVX2__)
  const auto rounded = [](__m256i bits) {
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    return _mm256_srli_epi32(sum, 16);
  };
  for (; i + 16 <= n; i += 16) {
    const __m256 low = _mm256_loadu_ps(from + i), high = _mm256_loadu_ps(from + i + 8);
    const __m256 nan = _mm256_cmp_ps(low, high, _CMP_UNORD_Q);  // in either
    if (_mm256_movemask_ps(nan) != 0) {
      for (std::int64_t j = i; j < i + 16; ++j) to[j].bits = narrowed_bfloat16(from[j]);
      continue;
    }
    const __m256i packed =
        _mm256_packus_epi32(rounded(_mm256_castps_si256(low)), rounded(_mm256_castps_si256(high)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_permute4x64_epi64(packed, 0b11011000));
  }
#endif
  for (; i < n; ++i) to[i].bits = narrowed_bfloat16(from[i]);
}

void widen_row(DType from, const void* x, std::int64_t n, float* to) {
  if (from == DType::f16)
    widen_row(static_cast<const half*>(x), n, to);
  else
    widen_row(static_cast<const bfloat16*>(x), n, to);
}

void narrow_row(const float* from, std::int64_t n, DType to, void* y) {
  if (to == DType::f16)
    narrow_row(from, n, static_cast<half*>(y));
  else
    narrow_row(from, n, static_cast<bfloat16*>(y));
}

}  // namespace troupe
