// Products of bf16 as the tiles of AMX add them up, on AMX or without it: the same bits, but for
// the sign and payload of NaN.
//
// 16 pairs of elements of k make two sums that begin at 0, one of the even elements' products and
// one of the odd ones'; each product is fused with its addition. Both together are then added to
// what the pairs before have given. Everything is rounded to nearest even, and subnormal operands
// and results count as 0.
//
// For tests, this header compiles at any level: functions name the instructions that they need.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace troupe::tiles {

inline constexpr std::int64_t kRows = 16, kPairs = 16, kColumns = 32;

// sums [rows, 32] = A [rows, pairs] B [pairs, 32], or += it unless `first`. REQUIRES: 16 or 32
// rows, pairs a multiple of 16.
using Add = void (*)(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                     std::int64_t pairs, std::int64_t rows, float* sums, bool first);

// While it lives, subnormal operands and results are 0 on this thread, and rounding is to nearest.
class Zeros {
 public:
  Zeros() { _mm_setcsr(0x9fc0); }
  ~Zeros() { _mm_setcsr(before_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;

 private:
  const unsigned before_ = _mm_getcsr();
};

// ---- on AMX -----------------------------------------------------------------------------------

// While it lives, this thread has eight tiles of 16 rows of 64 bytes. Its context switches cost
// more as long.
class Tiles {
 public:
  __attribute__((target("amx-tile"))) Tiles() {
    struct alignas(64) {
      std::uint8_t palette = 1, unused[15] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shape;
    for (int i = 0; i < 8; ++i) shape.row_bytes[i] = 64, shape.rows[i] = kRows;
    asm volatile("" : : "r"(&shape) : "memory");  // g++ 12 does not see all that is read of it
    _tile_loadconfig(&shape);
  }
  __attribute__((target("amx-tile"))) ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// REQUIRES: Tiles on this thread.
__attribute__((target("amx-tile,amx-bf16"))) inline void add_on_amx(
    const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b, std::int64_t pairs,
    std::int64_t rows, float* sums, bool first) {
  constexpr std::int64_t kRow = kColumns * 4;  // bytes, of B and of the sums
  const bool both = rows > kRows;
  float *low = sums + kRows * kColumns, *right = sums + 16, *low_right = low + 16;
  asm volatile("" : : : "memory");
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, kRow);
    _tile_loadd(1, right, kRow);
    if (both) {
      _tile_loadd(2, low, kRow);
      _tile_loadd(3, low_right, kRow);
    }
  }
  for (; pairs > 0; pairs -= kPairs, b += kPairs * kColumns, a += kPairs) {
    _tile_loadd(4, b, kRow);
    _tile_loadd(5, b + 16, kRow);
    _tile_loadd(6, a, step_a * 4);
    _tile_dpbf16ps(0, 6, 4);
    _tile_dpbf16ps(1, 6, 5);
    if (both) {
      _tile_loadd(7, a + kRows * step_a, step_a * 4);
      _tile_dpbf16ps(2, 7, 4);
      _tile_dpbf16ps(3, 7, 5);
    }
  }
  _tile_stored(0, sums, kRow);
  _tile_stored(1, right, kRow);
  if (both) {
    _tile_stored(2, low, kRow);
    _tile_stored(3, low_right, kRow);
  }
  asm volatile("" : : : "memory");
}

// ---- without it -------------------------------------------------------------------------------

// 16 pairs for four rows of A and the 32 columns. REQUIRES: Zeros on this thread.
__attribute__((target("avx512f"))) inline void add_pairs_without_amx(const std::uint32_t* a,
                                                                     std::int64_t step_a,
                                                                     const std::uint32_t* b,
                                                                     float* sums) {
  constexpr int kHeight = 4;
  typedef std::uint32_t Words __attribute__((vector_size(64)));
  __m512 evens[kHeight][2], odds[kHeight][2];
  for (int i = 0; i < kHeight; ++i)
    for (int half = 0; half < 2; ++half) evens[i][half] = odds[i][half] = _mm512_setzero_ps();
  for (std::int64_t p = 0; p < kPairs; ++p, b += kColumns) {
    __m512 b_even[2], b_odd[2];
    for (int half = 0; half < 2; ++half) {
      const Words words = (Words)_mm512_loadu_si512(b + 16 * half);
      b_even[half] = (__m512)(words << 16);
      b_odd[half] = (__m512)(words & 0xffff0000);
    }
    for (int i = 0; i < kHeight; ++i) {
      std::uint32_t word;  // at any address
      std::memcpy(&word, a + i * step_a + p, sizeof(word));
      const __m512 a_even = _mm512_castsi512_ps(_mm512_set1_epi32(std::int32_t(word << 16)));
      const __m512 a_odd = _mm512_castsi512_ps(_mm512_set1_epi32(std::int32_t(word & 0xffff0000)));
      for (int half = 0; half < 2; ++half) {
        evens[i][half] = _mm512_fmadd_ps(a_even, b_even[half], evens[i][half]);
        odds[i][half] = _mm512_fmadd_ps(a_odd, b_odd[half], odds[i][half]);
      }
    }
  }
  for (int i = 0; i < kHeight; ++i)
    for (int half = 0; half < 2; ++half) {
      float* sum = sums + i * kColumns + 16 * half;
      const __m512 all = _mm512_add_ps(evens[i][half], odds[i][half]);
      _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), all));
    }
}

// REQUIRES: Zeros on this thread.
inline void add_without_amx(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                            std::int64_t pairs, std::int64_t rows, float* sums, bool first) {
  if (first) std::memset(sums, 0, std::size_t(rows * kColumns) * sizeof(float));
  for (; pairs > 0; pairs -= kPairs, b += kPairs * kColumns, a += kPairs)
    for (std::int64_t i = 0; i < rows; i += 4)
      add_pairs_without_amx(a + i * step_a, step_a, b, sums + i * kColumns);
}

}  // namespace troupe::tiles
