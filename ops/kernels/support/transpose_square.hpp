// Squares of elements, transposed in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace troupe {

// Lanes 0, n, 1, n + 1, ... of a followed by b, of n lanes each: their first halves interleaved, or
// with kSecond the second ones.
template <int kSecond, class V, int... I>
V interleave(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  return __builtin_shufflevector(a, b, (I % 2 * n + I / 2 + kSecond * n / 2)...);
}

// Element j of row k of `from`, which has a row every `a` elements, goes to element k of row j of
// `to`. W rows of W elements, in registers: each round interleaves rows k and k + W / 2.
template <std::int64_t W, class T>
void transpose_square(const T* from, std::int64_t a, T* to, std::int64_t b) {
  typedef T V __attribute__((vector_size(W * sizeof(T))));
  constexpr auto lanes = std::make_integer_sequence<int, int(W)>();
  V rows[W], next[W];
  for (std::int64_t k = 0; k < W; ++k) std::memcpy(&rows[k], from + k * a, sizeof(V));
  for (std::int64_t round = 1; round < W; round *= 2) {
    for (std::int64_t k = 0; k < W / 2; ++k) {
      next[2 * k] = interleave<0>(rows[k], rows[k + W / 2], lanes);
      next[2 * k + 1] = interleave<1>(rows[k], rows[k + W / 2], lanes);
    }
    std::copy_n(next, W, rows);
  }
  for (std::int64_t k = 0; k < W; ++k) std::memcpy(to + k * b, &rows[k], sizeof(V));
}

}  // namespace troupe
