// Reductions over any set of axes, with the same bits for any number of lanes.
//
// Neighbouring dimensions that are kept, or reduced, together are merged. What is left is nearly
// always [outer, reduced, inner]:  out[o, i] = reduce over r of in[o, r, i].
//   inner == 1   rows: leaves of 4 Ki elements, then a binary tree over the leaves
//   inner > 1    columns: blocks of whole rows added up, then the same tree over the blocks
// Anything more tangled is transposed first.
//
// A reducer is a function object:
//   using Sum = the type that sums are kept in, given T;   static constexpr Sum<T> start();
//   template <class V> V operator()(V a, V b)   on scalars of that type and on vectors of them
//   template <class S> static S finish(S sum, std::int64_t count)   where a sum is not the result
//
// What a reducer adds to a build is the loops of ReduceLoops for each type of sum: shapes, lanes
// and the conversion of f16 and bf16 are written once, in reduce.cpp, for all of them.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/vector_math.hpp"

namespace troupe {

// The elements of even (kOdd: of odd) places of a, then those of b.
template <int kOdd, class V, int... I>
V every_other(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I + kOdd)...);
}

// One leaf of a row, in a fixed order: element i is a part of partial result i modulo 256 bytes;
// these are joined in the tree of tree_sum, a vector of pairs at a time.
template <class Op, class S>
S reduce_leaf(Op op, const S* x, std::int64_t n, S start) {
  if constexpr (std::is_same_v<S, bool>) {
    S all = start;
    for (std::int64_t i = 0; i < n; ++i) all = op(all, x[i]);
    return all;
  } else {
    constexpr int kWidth = kVectorBytes / sizeof(S), kVectors = 256 / kVectorBytes;
    constexpr std::int64_t kStep = 256 / sizeof(S);
    typedef S V __attribute__((vector_size(kVectorBytes)));
    alignas(64) S parts[kStep];
    std::fill_n(parts, kStep, start);
    V p[kVectors];
    std::memcpy(p, parts, sizeof(p));
    for (; n >= kStep; n -= kStep, x += kStep)
      for (int k = 0; k < kVectors; ++k) {
        V v;
        std::memcpy(&v, x + k * kWidth, sizeof(v));
        p[k] = op(p[k], v);
      }
    if (n > 0) {
      std::memcpy(parts, p, sizeof(p));
      for (std::int64_t k = 0; k < std::min(n, kStep); ++k) parts[k] = op(parts[k], x[k]);
      std::memcpy(p, parts, sizeof(p));
    }
    constexpr auto kLanes = std::make_integer_sequence<int, kWidth>();
    for (int vectors = kVectors / 2; vectors > 0; vectors /= 2)
      for (int k = 0; k < vectors; ++k)
        p[k] = op(every_other<0>(p[2 * k], p[2 * k + 1], kLanes),
                  every_other<1>(p[2 * k], p[2 * k + 1], kLanes));
    std::memcpy(parts, p, sizeof(V));
    tree_sum(kWidth, [&](std::int64_t a, std::int64_t b) { parts[a] = op(parts[a], parts[b]); });
    return parts[0];
  }
}

// A reducer on elements of type `in`, whose sums are of type `sum`: float where `in` is f16 or
// bf16.
struct ReduceLoops {
  DType in = DType::invalid, sum = DType::invalid;
  // sums[i] = the n elements from x + i * n on, in a fixed order.
  void (*leaves)(const void* x, std::int64_t n, std::int64_t count, void* sums) = nullptr;
  // sums[i] = sums[i] op x[i], for i in [0, n), then the same with the next of `rows` rows of x.
  void (*add)(void* sums, const void* x, std::int64_t n, std::int64_t rows) = nullptr;
  // Each of n sums as the result over `count` elements; null where it is that already.
  void (*finish)(void* sums, std::int64_t n, std::int64_t count) = nullptr;
  std::array<std::byte, 16> start = {};  // the sum of nothing
};

template <class Op, class S>
void reduce_leaves(const void* x, std::int64_t n, std::int64_t count, void* sums) {
  const S* in = static_cast<const S*>(x);
  S* out = static_cast<S*>(sums);
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = reduce_leaf(Op{}, in + i * n, n, S(Op::template start<S>()));
}
// sum[0 .. k) = sum op x, of k vectors, then the same with each of `rows` rows that are n apart.
template <int k, class Op, class S>
void reduce_strip(Op op, S* sum, const S* x, std::int64_t n, std::int64_t rows) {
  typedef S V __attribute__((vector_size(kVectorBytes)));
  constexpr std::int64_t kWidth = kVectorBytes / sizeof(S);
  V p[k];
  std::memcpy(p, sum, sizeof(p));
  for (; rows > 0; --rows, x += n)
    for (int j = 0; j < k; ++j) {
      V v;
      std::memcpy(&v, x + j * kWidth, sizeof(v));
      p[j] = op(p[j], v);
    }
  std::memcpy(sum, p, sizeof(p));
}
// Strips of columns stay in registers: all rows of a narrow matrix, and eight of a wide one, which
// is read along its rows.
template <class Op, class S>
void reduce_rows(void* sums, const void* x, std::int64_t n, std::int64_t rows) {
  S* sum = static_cast<S*>(sums);
  const S* in = static_cast<const S*>(x);
  constexpr std::int64_t kWidth = std::is_same_v<S, bool> ? 0 : kVectorBytes / sizeof(S);
  const std::int64_t most = n <= 4 * kWidth ? rows : 8;
  for (std::int64_t count; rows > 0; rows -= count, in += count * n) {
    count = std::min(most, rows);
    std::int64_t begin = 0;
    if constexpr (kWidth != 0) {
      for (; begin + 4 * kWidth <= n; begin += 4 * kWidth)
        reduce_strip<4>(Op(), sum + begin, in + begin, n, count);
      for (; begin + 2 * kWidth <= n; begin += 2 * kWidth)
        reduce_strip<2>(Op(), sum + begin, in + begin, n, count);
      for (; begin + kWidth <= n; begin += kWidth)
        reduce_strip<1>(Op(), sum + begin, in + begin, n, count);
    }
    for (std::int64_t row = 0; row < count && begin < n; ++row)
      each(n - begin, [to = sum + begin, from = in + row * n + begin](std::int64_t i) {
        to[i] = S(Op{}(to[i], from[i]));
      });
  }
}
template <class Op, class S>
void reduce_finish(void* sums, std::int64_t n, std::int64_t count) {
  S* sum = static_cast<S*>(sums);
  for (std::int64_t i = 0; i < n; ++i) sum[i] = Op::finish(sum[i], count);
}

template <class Op, class T>
constexpr ReduceLoops reduce_loops() {
  using S = typename Op::template Sum<T>;
  ReduceLoops loops{dtype_of<T>, dtype_of<S>, reduce_leaves<Op, S>, reduce_rows<Op, S>};
  if constexpr (requires { Op::finish(S(), 1); }) loops.finish = reduce_finish<Op, S>;
  auto start = std::bit_cast<std::array<std::byte, sizeof(S)>>(Op::template start<S>());
  for (std::size_t i = 0; i < sizeof(S); ++i) loops.start[i] = start[i];
  return loops;
}
template <class Op, class... Ts>
std::span<const ReduceLoops> reduce_table(Types<Ts...>) {
  static constexpr ReduceLoops table[] = {reduce_loops<Op, Ts>()...};
  return table;
}

// Sums of numbers; integers wrap around.
struct ReduceSum {
  template <class T>
  using Sum =
      typename std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                  std::make_unsigned<T>, std::type_identity<Compute<T>>>::type;
  template <class T>
  static constexpr Sum<T> start() {
    return 0;
  }
  template <class V>
  V operator()(V a, V b) const {
    return V(a + b);
  }
};
// The loops of sums, for real or complex elements.
std::span<const ReduceLoops> sum_table(DType dtype);

// `x` reduced over the dimensions in `reduced` by the loops that `table` has for its type, under
// the shape `out`.
Expected<Tensor> reduce(const KernelContext& ctx, std::span<const ReduceLoops> table,
                        const Tensor& x, std::vector<bool> reduced, const Shape& out);

}  // namespace troupe
