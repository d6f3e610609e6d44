#include "ops/kernels/support/half_product.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "ops/isa.hpp"
#include "ops/kernels/support/bf16_tiles.hpp"
#include "ops/kernels/support/transpose_square.hpp"
#include "ops/kernels/support/typed.hpp"

namespace troupe {
namespace {

// Operands are laid out as words: pairs of elements of bf16, single ones of f16 as f32.
template <class T>
constexpr std::int64_t kPerWord = std::is_same_v<T, bfloat16> ? 2 : 1;
// C is computed in blocks of so many rows and columns, and operands are laid out in pieces of as
// many rows of A or columns of B and 16 words.
constexpr std::int64_t kBlock = 32, kWords = tiles::kPairs;
constexpr std::int64_t kColumns = tiles::kColumns;  // of a panel of B, and of sums
static_assert(kBlock == kColumns && kBlock == 2 * kWords);
// Words of k at a time: a panel of B and rows of A for a block stay in the nearest cache.
constexpr std::int64_t kMostWords = 128;
// Longer rows of A, in words, are copied: those of a tile would share few sets of the nearest
// cache.
constexpr std::int64_t kLongRow = 512;

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// How products are added up, of A in multiples of so many rows and words, zeros beyond its own.
struct Form {
  std::int64_t rows, words;
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

// The same of words that are f32, one product after another.
template <int rows>
void add_floats(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                std::int64_t words, float* sums) {
  __m512 left[rows], right[rows];
  for (int i = 0; i < rows; ++i) {
    left[i] = _mm512_loadu_ps(sums + i * kColumns);
    right[i] = _mm512_loadu_ps(sums + i * kColumns + 16);
  }
  for (; words > 0; --words, ++a, b += kColumns) {
    const __m512 b_left = _mm512_loadu_ps(b), b_right = _mm512_loadu_ps(b + 16);
    for (int i = 0; i < rows; ++i) {
      const __m512 x = _mm512_set1_ps(std::bit_cast<float>(a[i * step_a]));
      left[i] = _mm512_fmadd_ps(x, b_left, left[i]);
      right[i] = _mm512_fmadd_ps(x, b_right, right[i]);
    }
  }
  for (int i = 0; i < rows; ++i) {
    _mm512_storeu_ps(sums + i * kColumns, left[i]);
    _mm512_storeu_ps(sums + i * kColumns + 16, right[i]);
  }
}

// Any number of rows, by functions for 8, 4, 2 and 1.
using AddRows = void (*)(const std::uint32_t*, std::int64_t, const std::uint32_t*, std::int64_t,
                         float*);
template <AddRows eight, AddRows four, AddRows two, AddRows one>
void add_by_rows(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                 std::int64_t words, std::int64_t rows, float* sums, bool first) {
  if (first) std::fill_n(sums, rows * kColumns, 0.0f);
  for (std::int64_t height = 8; rows > 0; height /= 2)
    for (; rows >= height; rows -= height, a += height * step_a, sums += height * kColumns)
      (height == 8   ? eight
       : height == 4 ? four
       : height == 2 ? two
                     : one)(a, step_a, b, words, sums);
}

template <class T>
const Form& form() {
  static const Form found = [] {
    if (std::is_same_v<T, half>)
      return Form{1, 1, add_by_rows<add_floats<8>, add_floats<4>, add_floats<2>, add_floats<1>>};
    if (ops::adds_by_tiles())
      return Form{tiles::kRows, kWords,
                  ops::has_tiles() ? tiles::add_on_amx : tiles::add_without_amx};
    if (__builtin_cpu_supports("avx512bf16"))
      return Form{1, 1, add_by_rows<add_rows<8>, add_rows<4>, add_rows<2>, add_rows<1>>};
    return Form{1, 1,
                add_by_rows<add_rows_plainly<8>, add_rows_plainly<4>, add_rows_plainly<2>,
                            add_rows_plainly<1>>};
  }();
  return found;
}

// 16 words of elements that lie together.
inline void copy_words(const bfloat16* from, std::uint32_t* to) {
  std::memcpy(to, from, 4 * kWords);
}
inline void copy_words(const half* from, std::uint32_t* to) {
  _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}

// A word of each of 32 items, whose elements of one k lie together, from one k to the next `step`.
inline void join_words(const bfloat16* from, std::int64_t step, std::uint32_t* to) {
  for (std::int64_t r = 0; r < kBlock; ++r)
    to[r] = from[r].bits | std::uint32_t{from[step + r].bits} << 16;
}
inline void join_words(const half* from, std::int64_t, std::uint32_t* to) {
  copy_words(from, to);
  copy_words(from + kWords, to + kWords);
}

// One operand: rows of op(A) or columns of op(B), its items, stored as [size, k] or, if k_first, as
// [k, size].
template <class T>
struct Operand {
  const T* data;
  std::int64_t size, k;
  bool k_first;

  std::int64_t words() const { return (k + kPerWord<T> - 1) / kPerWord<T>; }
  // 32 items from i on and 16 words from p on, zeros beyond the operand: word p + q of item i + r
  // at to[q * step + r].
  void by_words(std::int64_t i, std::int64_t p, std::uint32_t* to, std::int64_t step) const {
    if (k_first) return as_stored(i, p, to, step);
    std::uint32_t words[kBlock * kWords];
    as_stored(i, p, words, kWords);
    for (std::int64_t r = 0; r < kBlock; r += kWords)
      transpose_square<kWords>(words + r * kWords, kWords, to + r, step);
  }
  // The same at to[r * step + q].
  void by_items(std::int64_t i, std::int64_t p, std::uint32_t* to, std::int64_t step) const {
    if (!k_first) return as_stored(i, p, to, step);
    std::uint32_t words[kBlock * kWords];
    as_stored(i, p, words, kBlock);
    for (std::int64_t r = 0; r < kBlock; r += kWords)
      transpose_square<kWords>(words + r, kBlock, to + r * step, step);
  }

 private:
  void as_stored(std::int64_t i, std::int64_t p, std::uint32_t* to, std::int64_t step) const {
    constexpr std::int64_t kPer = kPerWord<T>, kElements = kPer * kWords;
    const std::int64_t items = std::clamp<std::int64_t>(size - i, 0, kBlock);
    const std::int64_t elements = std::clamp<std::int64_t>(k - kPer * p, 0, kElements);
    const T* from = data + (k_first ? kPer * p * size + i : i * k + kPer * p);
    std::int64_t stride = k_first ? size : k;
    T padded[kBlock * kElements];
    if (items < kBlock || elements < kElements) {
      std::fill_n(padded, kBlock * kElements, T{});
      const std::int64_t rows = k_first ? elements : items, own = k_first ? items : elements;
      const std::int64_t width = k_first ? kBlock : kElements;
      for (std::int64_t r = 0; r < rows; ++r)
        std::copy_n(from + r * stride, own, padded + r * width);
      from = padded, stride = width;
    }
    if (k_first)
      for (std::int64_t q = 0; q < kWords; ++q)
        join_words(from + q * kPer * stride, stride, to + q * step);
    else
      for (std::int64_t r = 0; r < kBlock; ++r) copy_words(from + r * stride, to + r * step);
  }
};

// Rounded to bf16, in the higher half of each.
inline __m512i rounded(__m512 sums) {
  const __m512i bits = _mm512_castps_si512(sums);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(sum, nan, _mm512_set1_epi32(0x7fc00000));
}

// Rows of sums, rounded: n columns of them. All NaN become one.
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

void narrow(const float* sums, std::int64_t rows, std::int64_t n, half* to, std::int64_t step) {
  const auto rounded = [](__m512 x) {
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtps_ph(_mm512_mask_mov_ps(x, nan, _mm512_set1_ps(NAN)),
                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  };
  const auto own = ~0u >> (kColumns - n);
  for (; rows > 0; --rows, sums += kColumns, to += step) {
    _mm256_mask_storeu_epi16(to, __mmask16(own), rounded(_mm512_load_ps(sums)));
    _mm256_mask_storeu_epi16(to + 16, __mmask16(own >> 16), rounded(_mm512_load_ps(sums + 16)));
  }
}

// C [m,n] of A, and of B as panels of columns or as it is.
template <class T>
struct Blocks {
  const Form& form;
  const std::uint32_t* a;  // in words
  std::int64_t step_a;     // words from row to row
  Operand<T> b;
  const std::uint32_t* panels;  // [columns / 32, words, 32], or null
  std::int64_t n, words;
  T* c;

  // Those rows and columns of C.
  Status multiply(const KernelContext& ctx, Range rows, Range columns) const {
    alignas(64) float two[2 * kBlock * kColumns];
    alignas(64) std::uint32_t own[kMostWords * kColumns];
    // If k is done in one step, no sums are kept: a block is rounded while the next one is added.
    const bool at_once = words <= kMostWords;
    Tensor kept;
    float* sums = two;
    if (!at_once) {
      TROUPE_TRY(kept, ctx.allocate(DType::f32, Shape{round_up(rows.size(), kBlock),
                                                      round_up(columns.size(), kColumns)}));
      sums = kept.mutable_data<float>();
    }
    std::optional<tiles::Zeros> zeros;
    if (std::is_same_v<T, bfloat16>) zeros.emplace();
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
    for (std::int64_t p = 0; p == 0 || p < words; p += kMostWords) {
      const std::int64_t count = std::min(kMostWords, words - p);
      const bool last = p + count == words;
      const std::uint32_t* panel = nullptr;
      for (std::int64_t t = 0; t < blocks; ++t) {
        if (t % down == 0) panel = panel_of(first_column(t), p, count, own);
        form.add(a + first_row(t) * step_a + p, step_a, panel, round_up(count, form.words),
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
    if (panels != nullptr) return panels + j * round_up(words, kWords) + p * kColumns;
    for (std::int64_t q = 0; q < count; q += kWords)
      b.by_words(j, p + q, own + q * kColumns, kColumns);
    return own;
  }
};

}  // namespace

template <class T>
Status HalfProduct<T>::run(const KernelContext& c, const T* a, const T* b, T* product,
                           bool alone) const {
  const auto each = [&](std::int64_t count, FunctionRef<Status(std::int64_t)> part) -> Status {
    if (!alone) return parallel_chunks(c, count, part);
    for (std::int64_t i = 0; i < count; ++i) TROUPE_TRY(part(i));
    return ok_status();
  };
  // Calls `piece` for the first item and pair of each piece, in the order of the operand's memory.
  const auto lay_out = [&](const Operand<T>& x,
                           FunctionRef<void(std::int64_t, std::int64_t)> piece) {
    const std::int64_t down = (x.size + kBlock - 1) / kBlock,
                       across = (x.words() + kWords - 1) / kWords;
    const std::int64_t outer = x.k_first ? across : down, inner = x.k_first ? down : across;
    const Chunks strips = row_chunks(outer, inner * kBlock * kWords);
    return each(strips.count, [&](std::int64_t s) {
      for (std::int64_t o = strips[s].begin; o < strips[s].end; ++o)
        for (std::int64_t i = 0; i < inner; ++i)
          piece((x.k_first ? i : o) * kBlock, (x.k_first ? o : i) * kWords);
      return ok_status();
    });
  };
  const Form& f = form<T>();
  const Operand<T> left{a, m, k, transpose_a}, right{b, n, k, !transpose_b};
  const std::int64_t words = left.words(), padded = round_up(words, kWords);
  Blocks<T> blocks{
      f, reinterpret_cast<const std::uint32_t*>(a), k / 2, right, nullptr, n, words, product};
  // Rows of bf16 are in words already, unless they are columns, or end amid a word or a tile.
  const bool as_it_is = std::is_same_v<T, bfloat16> && !transpose_a && k % (2 * f.words) == 0 &&
                        m % f.rows == 0 && k / 2 <= kLongRow;
  Tensor copy, panels;
  if (!as_it_is) {
    blocks.step_a = padded + kWords;  // not a power of two, as above
    TROUPE_TRY(copy, c.allocate(DType::u32, Shape{round_up(m, kBlock), blocks.step_a}));
    auto* to = copy.mutable_data<std::uint32_t>();
    blocks.a = to;
    TROUPE_TRY(lay_out(left, [&](std::int64_t i, std::int64_t p) {
      left.by_items(i, p, to + i * blocks.step_a + p, blocks.step_a);
    }));
  }
  // Parts of C, each of one lane. Larger ones where k is large: each reads all of k.
  const std::int64_t edge = k <= 512 ? 128 : 256;
  const Chunks rows = Chunks::of_step(m, edge), columns = Chunks::of_step(n, edge);
  if (rows.count > 1) {  // else no part needs what another one makes of B
    TROUPE_TRY(panels, c.allocate(DType::u32, Shape{round_up(n, kColumns), padded}));
    auto* to = panels.mutable_data<std::uint32_t>();
    blocks.panels = to;
    TROUPE_TRY(lay_out(right, [&](std::int64_t j, std::int64_t p) {
      right.by_words(j, p, to + j * padded + p * kColumns, kColumns);
    }));
  }
  return each(rows.count * columns.count, [&](std::int64_t i) {
    return blocks.multiply(c, rows[i % rows.count], columns[i / rows.count]);
  });
}

template struct HalfProduct<half>;
template struct HalfProduct<bfloat16>;

}  // namespace troupe
#endif
