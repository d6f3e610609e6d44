#include "ops/kernels/support/bf16_product.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/kernels/support/half_rows.hpp"
#include "ops/kernels/support/typed.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kRows = 8, kColumns = 32;  // of a tile
// Of k and of m: what one lane takes of B at a time stays in the nearest cache, its sums beside it.
constexpr std::int64_t kPairs = 128, kMostRows = 512;

// sums += A B for `rows` rows of A and one panel of B; rows of A and of the sums are `step_a` and
// `step` apart.
using Tile = void (*)(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                      std::int64_t pairs, float* sums, std::int64_t step);

// Two elements, at any address.
inline std::int32_t word_at(const std::uint32_t* at) {
  std::int32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

template <int rows>
__attribute__((target("avx512bf16"))) void tile(const std::uint32_t* a, std::int64_t step_a,
                                                const std::uint32_t* b, std::int64_t pairs,
                                                float* sums, std::int64_t step) {
  __m512 left[rows], right[rows];
  for (int i = 0; i < rows; ++i) {
    left[i] = _mm512_loadu_ps(sums + i * step);
    right[i] = _mm512_loadu_ps(sums + i * step + 16);
  }
  for (; pairs > 0; --pairs, ++a, b += kColumns) {
    const auto b_left = (__m512bh)_mm512_loadu_si512(b);
    const auto b_right = (__m512bh)_mm512_loadu_si512(b + 16);
    for (int i = 0; i < rows; ++i) {
      const auto pair = (__m512bh)_mm512_set1_epi32(word_at(a + i * step_a));
      left[i] = _mm512_dpbf16_ps(left[i], b_left, pair);
      right[i] = _mm512_dpbf16_ps(right[i], b_right, pair);
    }
  }
  for (int i = 0; i < rows; ++i) {
    _mm512_storeu_ps(sums + i * step, left[i]);
    _mm512_storeu_ps(sums + i * step + 16, right[i]);
  }
}

// As that instruction has it: the odd elements first, subnormal numbers as 0 (Zeros below).
inline __m512 add_pairs(__m512 sum, __m512i x, __m512i y) {
  const auto odd = [](__m512i v) {
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(std::int32_t(0xffff0000))));
  };
  const auto even = [](__m512i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); };
  return _mm512_fmadd_ps(even(x), even(y), _mm512_fmadd_ps(odd(x), odd(y), sum));
}
template <int rows>
void plain_tile(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                std::int64_t pairs, float* sums, std::int64_t step) {
  for (; pairs > 0; --pairs, ++a, b += kColumns)
    for (int i = 0; i < rows; ++i) {
      const __m512i pair = _mm512_set1_epi32(word_at(a + i * step_a));
      for (int half = 0; half < 32; half += 16) {
        float* sum = sums + i * step + half;
        _mm512_storeu_ps(sum, add_pairs(_mm512_loadu_ps(sum), _mm512_loadu_si512(b + half), pair));
      }
    }
}

// While it lives, subnormal operands and results are 0 on this thread.
class Zeros {
 public:
  Zeros() { _mm_setcsr(before_ | 0x8040); }
  ~Zeros() { _mm_setcsr(before_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;

 private:
  const unsigned before_ = _mm_getcsr();
};

template <int... log>
Tile tile_of(std::int64_t rows, std::integer_sequence<int, log...>) {
  static const bool native = __builtin_cpu_supports("avx512bf16");
  Tile found = nullptr;
  ((rows == 1 << log ? void(found = native ? tile<1 << log> : plain_tile<1 << log>) : void()), ...);
  return found;
}

std::uint32_t pair_of(bfloat16 even, bfloat16 odd) {
  return even.bits | std::uint32_t{odd.bits} << 16;
}

}  // namespace

void Bf16Product::pairs_of_row(const bfloat16* a, std::int64_t row, std::uint32_t* to) const {
  const auto at = [&](std::int64_t j) {
    return j >= k ? bfloat16{} : transpose_a ? a[j * m + row] : a[row * k + j];
  };
  for (std::int64_t p = 0; p < pairs(); ++p) to[p] = pair_of(at(2 * p), at(2 * p + 1));
}

void Bf16Product::pairs_of_columns(const bfloat16* b, std::int64_t first, Range of,
                                   std::uint32_t* to) const {
  const auto at = [&](std::int64_t row, std::int64_t column) {
    if (row >= k || column >= n) return bfloat16{};
    return transpose_b ? b[column * k + row] : b[row * n + column];
  };
  for (std::int64_t p = of.begin; p < of.end; ++p, to += kColumns) {
    if (!transpose_b && first + kColumns <= n && 2 * p + 2 <= k) {
      const bfloat16 *even = b + 2 * p * n + first, *odd = even + n;
      for (std::int64_t j = 0; j < kColumns; ++j) to[j] = pair_of(even[j], odd[j]);
      continue;
    }
    for (std::int64_t j = 0; j < kColumns; ++j)
      to[j] = pair_of(at(2 * p, first + j), at(2 * p + 1, first + j));
  }
}

void Bf16Product::multiply(const std::uint32_t* a, const bfloat16* b, Range rows,
                           std::int64_t first, bfloat16* c) const {
  const Zeros zeros;
  alignas(64) float sums[kMostRows * kColumns];
  alignas(64) std::uint32_t columns[kPairs * kColumns];
  std::fill_n(sums, rows.size() * kColumns, 0.0f);
  for (std::int64_t p = 0; p < pairs(); p += kPairs) {
    const std::int64_t count = std::min(kPairs, pairs() - p);
    pairs_of_columns(b, first, {p, p + count}, columns);
    for (std::int64_t i = rows.begin, height; i < rows.end; i += height) {
      height = kRows;
      while (i + height > rows.end) height /= 2;
      const Tile add = tile_of(height, std::integer_sequence<int, 0, 1, 2, 3>());
      add(a + i * pairs() + p, pairs(), columns, count, sums + (i - rows.begin) * kColumns,
          kColumns);
    }
  }
  for (std::int64_t i = rows.begin; i < rows.end; ++i)
    narrow_row(sums + (i - rows.begin) * kColumns, std::min(kColumns, n - first),
               c + i * n + first);
}

Status Bf16Product::run(const KernelContext& c, const bfloat16* a, const bfloat16* b,
                        bfloat16* product, bool alone) const {
  const auto each = [&](std::int64_t count, FunctionRef<void(std::int64_t)> part) {
    if (alone)
      for (std::int64_t i = 0; i < count; ++i) part(i);
    else
      c.parallel(count, [&](std::int64_t i) {
        if (!c.cancelled()) part(i);
      });
  };
  // Rows of A are in pairs already, unless they are columns, or their pairs are split.
  Tensor copy;
  const std::uint32_t* left = reinterpret_cast<const std::uint32_t*>(a);
  if (transpose_a || k % 2 != 0) {
    TROUPE_TRY(copy, c.allocate(DType::u32, Shape{m, pairs()}));
    auto* words = copy.mutable_data<std::uint32_t>();
    const Chunks rows = row_chunks(m, k);
    each(rows.count, [&](std::int64_t i) {
      for (std::int64_t row = rows[i].begin; row < rows[i].end; ++row)
        pairs_of_row(a, row, words + row * pairs());
    });
    left = words;
  }
  // Columns of C, each lane its own: what one makes of B no other one reads. About 16 MFLOP.
  const double tall = 2.0 * double(k) * double(kColumns) * double(m) / 16e6;
  const std::int64_t parts =
      std::max<std::int64_t>({1, std::int64_t(tall), (m + kMostRows - 1) / kMostRows});
  const std::int64_t height = ((m + parts - 1) / parts + kRows - 1) / kRows * kRows;
  const Chunks rows = Chunks::of_step(m, std::max<std::int64_t>(height, kRows));
  const Chunks columns = Chunks::of_step(n, kColumns);
  each(rows.count * columns.count, [&](std::int64_t i) {
    multiply(left, b, rows[i % rows.count], columns[i / rows.count].begin, product);
  });
  return ok_status();
}

}  // namespace troupe
#endif
