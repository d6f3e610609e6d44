#include "ops/kernels/support/bf16_product.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/isa.hpp"
#include "ops/kernels/support/bf16_tiles.hpp"
#include "ops/kernels/support/transpose_square.hpp"
#include "ops/kernels/support/typed.hpp"

namespace troupe {
namespace {

// C is computed in blocks of so many rows and columns, and operands are laid out in pieces of as
// many rows of A or columns of B and 16 pairs.
constexpr std::int64_t kBlock = 32, kPairs = tiles::kPairs;
constexpr std::int64_t kColumns = tiles::kColumns;  // of a panel of B, and of sums
static_assert(kBlock == kColumns && kBlock == 2 * kPairs);
// Pairs of k at a time: a panel of B and rows of A for a block stay in the nearest cache.
constexpr std::int64_t kMostPairs = 128;
// Longer rows of A, in words, are copied: those of a tile would share few sets of the nearest
// cache.
constexpr std::int64_t kLongRow = 512;

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// How one level adds up, with A in multiples of so many rows and pairs, zeros beyond its own.
struct Form {
  std::int64_t rows, pairs;
  tiles::Add add;
};

// Two elements, at any address.
inline std::int32_t word_at(const std::uint32_t* at) {
  std::int32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// sums += A B for `rows` rows of A and one panel of B; rows of A are step_a words apart.
template <int rows>
__attribute__((target("avx512bf16"))) void add_rows(const std::uint32_t* a, std::int64_t step_a,
                                                    const std::uint32_t* b, std::int64_t pairs,
                                                    float* sums) {
  __m512 left[rows], right[rows];
  for (int i = 0; i < rows; ++i) {
    left[i] = _mm512_loadu_ps(sums + i * kColumns);
    right[i] = _mm512_loadu_ps(sums + i * kColumns + 16);
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
    _mm512_storeu_ps(sums + i * kColumns, left[i]);
    _mm512_storeu_ps(sums + i * kColumns + 16, right[i]);
  }
}

// As that instruction has it: the odd elements first, subnormal numbers as 0 (tiles::Zeros).
inline __m512 add_pairs(__m512 sum, __m512i x, __m512i y) {
  const auto odd = [](__m512i v) {
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(std::int32_t(0xffff0000))));
  };
  const auto even = [](__m512i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); };
  return _mm512_fmadd_ps(even(x), even(y), _mm512_fmadd_ps(odd(x), odd(y), sum));
}
template <int rows>
void add_rows_plainly(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                      std::int64_t pairs, float* sums) {
  for (; pairs > 0; --pairs, ++a, b += kColumns)
    for (int i = 0; i < rows; ++i) {
      const __m512i pair = _mm512_set1_epi32(word_at(a + i * step_a));
      for (int half = 0; half < 32; half += 16) {
        float* sum = sums + i * kColumns + half;
        _mm512_storeu_ps(sum, add_pairs(_mm512_loadu_ps(sum), _mm512_loadu_si512(b + half), pair));
      }
    }
}

template <bool native>
void add_by_pairs(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                  std::int64_t pairs, std::int64_t rows, float* sums, bool first) {
  if (first) std::fill_n(sums, rows * kColumns, 0.0f);
  const auto some = [&]<int height>(std::integral_constant<int, height>) {
    for (; rows >= height; rows -= height, a += height * step_a, sums += height * kColumns)
      if constexpr (native)
        add_rows<height>(a, step_a, b, pairs, sums);
      else
        add_rows_plainly<height>(a, step_a, b, pairs, sums);
  };
  some(std::integral_constant<int, 8>());
  some(std::integral_constant<int, 4>());
  some(std::integral_constant<int, 2>());
  some(std::integral_constant<int, 1>());
}

const Form& form() {
  static const Form found = [] {
    if (ops::isa_level() == ops::kTileLevel)
      return Form{tiles::kRows, kPairs,
                  ops::has_tiles() ? tiles::add_on_amx : tiles::add_without_amx};
    const bool native = __builtin_cpu_supports("avx512bf16");
    return Form{1, 1, native ? add_by_pairs<true> : add_by_pairs<false>};
  }();
  return found;
}

inline std::uint32_t pair_of(bfloat16 even, bfloat16 odd) {
  return even.bits | std::uint32_t{odd.bits} << 16;
}

// One operand: rows of op(A) or columns of op(B), its items, stored as [size, k] or, if k_first, as
// [k, size]. It is read as words, pairs of elements of k.
struct Operand {
  const bfloat16* data;
  std::int64_t size, k;
  bool k_first;

  // The words of 32 items from i on and 16 pairs from p on, zeros beyond the operand: pair p + q of
  // item i + r at to[q * step + r].
  void by_pairs(std::int64_t i, std::int64_t p, std::uint32_t* to, std::int64_t step) const {
    if (k_first) return as_stored(i, p, to, step);
    std::uint32_t words[kBlock * kPairs];
    as_stored(i, p, words, kPairs);
    for (std::int64_t r = 0; r < kBlock; r += kPairs)
      transpose_square<kPairs>(words + r * kPairs, kPairs, to + r, step);
  }
  // The same at to[r * step + q].
  void by_items(std::int64_t i, std::int64_t p, std::uint32_t* to, std::int64_t step) const {
    if (!k_first) return as_stored(i, p, to, step);
    std::uint32_t words[kBlock * kPairs];
    as_stored(i, p, words, kBlock);
    for (std::int64_t r = 0; r < kBlock; r += kPairs)
      transpose_square<kPairs>(words + r, kBlock, to + r * step, step);
  }

 private:
  void as_stored(std::int64_t i, std::int64_t p, std::uint32_t* to, std::int64_t step) const {
    const std::int64_t items = std::clamp<std::int64_t>(size - i, 0, kBlock);
    const std::int64_t elements = std::clamp<std::int64_t>(k - 2 * p, 0, 2 * kPairs);
    const bool whole = items == kBlock && elements == 2 * kPairs;
    if (!k_first && whole) {
      const bfloat16* from = data + i * k + 2 * p;
      for (std::int64_t r = 0; r < kBlock; ++r)
        std::memcpy(to + r * step, from + r * k, 4 * kPairs);
    } else if (whole) {
      const bfloat16* from = data + 2 * p * size + i;
      for (std::int64_t q = 0; q < kPairs; ++q, from += 2 * size, to += step)
        for (std::int64_t r = 0; r < kBlock; ++r) to[r] = pair_of(from[r], from[size + r]);
    } else {
      const auto at = [&](std::int64_t r, std::int64_t j) {
        if (r >= items || j >= elements) return bfloat16{};
        return k_first ? data[(2 * p + j) * size + i + r] : data[(i + r) * k + 2 * p + j];
      };
      for (std::int64_t r = 0; r < kBlock; ++r)
        for (std::int64_t q = 0; q < kPairs; ++q)
          to[k_first ? q * step + r : r * step + q] = pair_of(at(r, 2 * q), at(r, 2 * q + 1));
    }
  }
};

// Rounded, in the higher half of each. All NaN become one.
inline __m512i rounded(__m512 sums) {
  const __m512i bits = _mm512_castps_si512(sums);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(sum, nan, _mm512_set1_epi32(0x7fc00000));
}

// Rows of sums, rounded: n columns of them.
void narrow(const float* sums, std::int64_t rows, std::int64_t n, bfloat16* to, std::int64_t step) {
  alignas(64) std::uint16_t halves[32];
  for (std::uint16_t i = 0; i < 32; ++i) halves[i] = std::uint16_t(2 * i + 1);
  const __m512i higher = _mm512_load_si512(halves);
  const auto own = __mmask32(~0u >> (kColumns - n));
  for (; rows > 0; --rows, sums += kColumns, to += step) {
    const __m512i left = rounded(_mm512_load_ps(sums)), right = rounded(_mm512_load_ps(sums + 16));
    _mm512_mask_storeu_epi16(to, own, _mm512_permutex2var_epi16(left, higher, right));
  }
}

// C [m,n] of A, and of B as panels of columns or as it is.
struct Blocks {
  const Form& form;
  const std::uint32_t* a;  // in pairs
  std::int64_t step_a;     // words from row to row
  Operand b;
  const std::uint32_t* panels;  // [columns / 32, pairs, 32], or null
  std::int64_t n, pairs;
  bfloat16* c;

  // Those rows and columns of C.
  Status multiply(const KernelContext& ctx, Range rows, Range columns) const {
    alignas(64) float two[2 * kBlock * kColumns];
    alignas(64) std::uint32_t own[kMostPairs * kColumns];
    // If k is done in one step, no sums are kept: a block is rounded while the next one is added.
    const bool at_once = pairs <= kMostPairs;
    Tensor kept;
    float* sums = two;
    if (!at_once) {
      TROUPE_TRY(kept, ctx.allocate(DType::f32, Shape{round_up(rows.size(), kBlock),
                                                      round_up(columns.size(), kColumns)}));
      sums = kept.mutable_data<float>();
    }
    const tiles::Zeros zeros;
    std::optional<tiles::Tiles> on_amx;
    if (form.add == tiles::add_on_amx) on_amx.emplace();
    const std::int64_t down = (rows.size() + kBlock - 1) / kBlock;
    const std::int64_t blocks = (columns.size() + kColumns - 1) / kColumns * down;
    const auto block = [&](std::int64_t t) {
      return sums + (at_once ? t % 2 : t) * kBlock * kColumns;
    };
    const auto first_row = [&](std::int64_t t) { return rows.begin + t % down * kBlock; };
    const auto first_column = [&](std::int64_t t) { return columns.begin + t / down * kColumns; };
    const auto height = [&](std::int64_t t) { return std::min(kBlock, rows.end - first_row(t)); };
    const auto round = [&](std::int64_t t) {
      const std::int64_t j = first_column(t);
      narrow(block(t), height(t), std::min(kColumns, n - j), c + first_row(t) * n + j, n);
    };
    for (std::int64_t p = 0; p == 0 || p < pairs; p += kMostPairs) {
      const std::int64_t count = std::min(kMostPairs, pairs - p);
      const bool last = p + count == pairs;
      const std::uint32_t* panel = nullptr;
      for (std::int64_t t = 0; t < blocks; ++t) {
        if (t % down == 0) panel = panel_of(first_column(t), p, count, own);
        form.add(a + first_row(t) * step_a + p, step_a, panel, round_up(count, form.pairs),
                 round_up(height(t), form.rows), block(t), p == 0);
        if (last && t > 0) round(t - 1);
      }
      if (last) round(blocks - 1);
    }
    return ok_status();
  }

 private:
  const std::uint32_t* panel_of(std::int64_t j, std::int64_t p, std::int64_t count,
                                std::uint32_t* own) const {
    if (panels != nullptr) return panels + j * round_up(pairs, kPairs) + p * kColumns;
    for (std::int64_t q = 0; q < count; q += kPairs)
      b.by_pairs(j, p + q, own + q * kColumns, kColumns);
    return own;
  }
};

}  // namespace

Status Bf16Product::run(const KernelContext& c, const bfloat16* a, const bfloat16* b,
                        bfloat16* product, bool alone) const {
  const auto each = [&](std::int64_t count, FunctionRef<Status(std::int64_t)> part) -> Status {
    if (!alone) return parallel_chunks(c, count, part);
    for (std::int64_t i = 0; i < count; ++i) TROUPE_TRY(part(i));
    return ok_status();
  };
  // Calls `piece` for the first item and pair of each piece, in the order of the operand's memory.
  const auto lay_out = [&](const Operand& x, FunctionRef<void(std::int64_t, std::int64_t)> piece) {
    const std::int64_t down = (x.size + kBlock - 1) / kBlock,
                       across = ((k + 1) / 2 + kPairs - 1) / kPairs;
    const std::int64_t outer = x.k_first ? across : down, inner = x.k_first ? down : across;
    const Chunks strips = row_chunks(outer, inner * kBlock * kPairs);
    return each(strips.count, [&](std::int64_t s) {
      for (std::int64_t o = strips[s].begin; o < strips[s].end; ++o)
        for (std::int64_t i = 0; i < inner; ++i)
          piece((x.k_first ? i : o) * kBlock, (x.k_first ? o : i) * kPairs);
      return ok_status();
    });
  };
  const Form& f = form();
  const std::int64_t pairs = (k + 1) / 2, padded = round_up(pairs, kPairs);
  const Operand left{a, m, k, transpose_a}, right{b, n, k, !transpose_b};
  Blocks blocks{f,      reinterpret_cast<const std::uint32_t*>(a), k / 2, right, nullptr, n, pairs,
                product};
  // Rows of A are in pairs already, unless they are columns, or end amid a pair or a tile.
  Tensor copy, panels;
  if (transpose_a || k % (2 * f.pairs) != 0 || m % f.rows != 0 || k / 2 > kLongRow) {
    blocks.step_a = padded + kPairs;  // not a power of two, as above
    TROUPE_TRY(copy, c.allocate(DType::u32, Shape{round_up(m, kBlock), blocks.step_a}));
    auto* words = copy.mutable_data<std::uint32_t>();
    blocks.a = words;
    TROUPE_TRY(lay_out(left, [&](std::int64_t i, std::int64_t p) {
      left.by_items(i, p, words + i * blocks.step_a + p, blocks.step_a);
    }));
  }
  // Parts of C, each of one lane. Larger ones where k is large: each reads all of k.
  const std::int64_t edge = k <= 512 ? 128 : 256;
  const Chunks rows = Chunks::of_step(m, edge), columns = Chunks::of_step(n, edge);
  if (rows.count > 1) {  // else no part needs what another one makes of B
    TROUPE_TRY(panels, c.allocate(DType::u32, Shape{round_up(n, kColumns), padded}));
    auto* words = panels.mutable_data<std::uint32_t>();
    blocks.panels = words;
    TROUPE_TRY(lay_out(right, [&](std::int64_t j, std::int64_t p) {
      right.by_pairs(j, p, words + j * padded + p * kColumns, kColumns);
    }));
  }
  return each(rows.count * columns.count, [&](std::int64_t i) {
    return blocks.multiply(c, rows[i % rows.count], columns[i / rows.count]);
  });
}

}  // namespace troupe
#endif
