// Reductions over any set of axes, with the same bits for any number of lanes.
//
// Neighbouring dimensions that are kept, or reduced, together are merged. What is left is nearly
// always [outer, reduced, inner]:  out[o, i] = reduce over r of in[o, r, i].
//   inner == 1   rows: leaves of 4 Ki elements, then a binary tree over the leaves
//   inner > 1    columns: blocks of whole rows added up, then the same tree over the blocks
// Anything more tangled is transposed first.
//
// A Reducer is a function object:
//   using Sum = the type that sums are kept in, given T;   static Sum<T> start();
//   template <class V> V operator()(V a, V b)   on scalars of that type and on vectors of them
#pragma once

#include <cstring>
#include <limits>
#include <vector>

#include "ops/kernels/args.hpp"
#include "ops/kernels/elementwise.hpp"
#include "ops/kernels/strided.hpp"

// Vectors of 64 bytes are returned by functions that are inlined: how a call would pass them does
// not matter. No pop: the reducers of the including file are meant too.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace troupe {

// Which dimensions of a shape go, and what is left.
struct Reduction {
  std::vector<bool> reduced;
  Shape kept;  // without the reduced dimensions
  std::int64_t outer = 1, count = 1, inner = 1;
  bool tangled = false;  // not [outer, count, inner]: transpose to [outer, count] first

  static Reduction of(const Shape& in, std::vector<bool> reduced) {
    Reduction r;
    r.reduced = std::move(reduced);
    int stage = 0;  // 0: outer, 1: count, 2: inner
    for (int i = 0; i < in.rank(); ++i) {
      const bool goes = r.reduced[std::size_t(i)];
      const std::int64_t d = in.dim(i);
      if (!goes) r.kept.append(d);
      if (d == 1) continue;
      if (goes && stage == 0) stage = 1;
      if (!goes && stage == 1) stage = 2;
      if (goes && stage == 2) r.tangled = true;
      (goes ? r.count : stage == 0 ? r.outer : r.inner) *= d;
    }
    if (r.tangled) {
      r.outer = r.kept.elements();
      r.inner = 1;
    }
    return r;
  }
};

// A copy of `x` with the kept dimensions first, the reduced ones behind them.
inline Expected<Tensor> reduced_last(const KernelContext& ctx, const Tensor& x,
                                     const std::vector<bool>& reduced) {
  Shape shape;
  Strides strides{};
  const Strides from = strides_of(x.shape());
  for (bool last : {false, true})
    for (int i = 0; i < x.rank(); ++i)
      if (reduced[std::size_t(i)] == last) {
        strides[std::size_t(shape.rank())] = from[std::size_t(i)];
        shape.append(x.dim(i));
      }
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  TROUPE_TRY(dispatch_size(dtype_size(x.dtype()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    strided_copy(ctx, shape, x.data<T>(), strides, y.mutable_data<T>(), strides_of(shape));
    return ok_status();
  }));
  return y;
}

// One leaf of a row, in a fixed order: 4 vectors of partial results, joined in a tree.
template <class Op, class S>
S reduce_leaf(Op op, const S* x, std::int64_t n, S start) {
  if constexpr (std::is_same_v<S, bool>) {
    S all = start;
    for (std::int64_t i = 0; i < n; ++i) all = op(all, x[i]);
    return all;
  } else {
    constexpr std::int64_t kWidth = 64 / sizeof(S), kStep = 4 * kWidth;
    typedef S V __attribute__((vector_size(64)));
    alignas(64) S parts[kStep];
    std::fill_n(parts, kStep, start);
    V p[4];
    std::memcpy(p, parts, sizeof(p));
    std::int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      V v[4];
      std::memcpy(v, x + i, sizeof(v));
      for (int k = 0; k < 4; ++k) p[k] = op(p[k], v[k]);
    }
    std::memcpy(parts, p, sizeof(p));
    for (std::int64_t k = 0; i < n; ++i, ++k) parts[k] = op(parts[k], x[i]);
    tree_sum(kStep, [&](std::int64_t a, std::int64_t b) { parts[a] = op(parts[a], parts[b]); });
    return parts[0];
  }
}

// The reducer on one dtype; finish(result, count) turns a sum into what goes out (a mean).
template <class Op, class T>
class Reduce {
 public:
  using S = typename Op::template Sum<T>;

  // out[outer, inner] from in[outer, count, inner].
  static Status run(const KernelContext& ctx, const T* in, T* out, const Reduction& r) {
    if (r.outer * r.inner == 0) return ok_status();
    if (r.count == 0) {
      for (std::int64_t i = 0; i < r.outer * r.inner; ++i)
        out[i] = finish(Op::template start<T>(), 0);
      return ok_status();
    }
    return r.inner == 1 ? rows(ctx, in, out, r) : columns(ctx, in, out, r);
  }

 private:
  static T finish(S sum, std::int64_t count) { return T(Op::finish(sum, count)); }

  static S leaf(const T* x, std::int64_t n) {
    const S start = Op::template start<T>();
    if constexpr (sizeof(S) == sizeof(T)) {
      return reduce_leaf(Op{}, reinterpret_cast<const S*>(x), n, start);
    } else {  // f16, bf16
      S wide[kSumLeaf];
      for (std::int64_t i = 0; i < n; ++i) wide[i] = S(x[i]);
      return reduce_leaf(Op{}, static_cast<const S*>(wide), n, start);
    }
  }

  static Status rows(const KernelContext& ctx, const T* in, T* out, const Reduction& r) {
    const Chunks leaves = sum_leaves(r.count);
    if (leaves.count == 1) {
      const Chunks chunks = row_chunks(r.outer, r.count);
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        for (std::int64_t o = chunks[c].begin; o < chunks[c].end; ++o)
          out[o] = finish(leaf(in + o * r.count, r.count), r.count);
      });
      return ok_status();
    }
    std::vector<PaddedSum> partial(std::size_t(r.outer * leaves.count));
    const Chunks chunks = sum_chunks(r.outer * leaves.count);
    ctx.parallel(chunks.count, [&](std::int64_t c) {
      for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k) {
        const Range range = leaves[k % leaves.count];
        partial[std::size_t(k)].value =
            leaf(in + k / leaves.count * r.count + range.begin, range.size());
      }
    });
    for (std::int64_t o = 0; o < r.outer; ++o) {
      PaddedSum* p = partial.data() + o * leaves.count;
      tree_sum(leaves.count,
               [&](std::int64_t a, std::int64_t b) { p[a].value = Op{}(p[a].value, p[b].value); });
      out[o] = finish(p[0].value, r.count);
    }
    return ok_status();
  }
  struct PaddedSum {  // no vector<bool>
    S value;
  };

  static Status columns(const KernelContext& ctx, const T* in, T* out, const Reduction& r) {
    const Chunks blocks = column_sum_leaves(r.count, r.inner);
    TROUPE_TRY(Tensor partial,
               ctx.allocate(dtype_of<Stored>, Shape{r.outer, blocks.count, r.inner}));
    Stored* sums = partial.mutable_data<Stored>();
    ctx.parallel(r.outer * blocks.count, [&](std::int64_t k) {
      const Range range = blocks[k % blocks.count];
      const T* x = in + (k / blocks.count * r.count + range.begin) * r.inner;
      Stored* sum = sums + k * r.inner;
      std::fill_n(sum, r.inner, Stored(Op::template start<T>()));
      for (std::int64_t row = 0; row < range.size(); ++row, x += r.inner) add(sum, x, r.inner);
    });
    for (std::int64_t o = 0; o < r.outer; ++o) {
      Stored* block = sums + o * blocks.count * r.inner;
      tree_sum(blocks.count, [&](std::int64_t a, std::int64_t b) {
        each(r.inner, [to = block + a * r.inner, from = block + b * r.inner](std::int64_t i) {
          to[i] = Stored(Op{}(S(to[i]), S(from[i])));
        });
      });
      for (std::int64_t i = 0; i < r.inner; ++i)
        out[o * r.inner + i] = finish(S(block[i]), r.count);
    }
    return ok_status();
  }
  // S as an element type: wrapping sums are kept in unsigned integers of the same width.
  using Stored = std::conditional_t<sizeof(S) == sizeof(T), T, S>;
  static void add(Stored* sum, const T* x, std::int64_t n) {
    each(n, [=](std::int64_t i) { sum[i] = Stored(Op{}(S(sum[i]), S(Compute<T>(x[i])))); });
  }
};

template <class T, bool = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct Wrapping {
  using type = Compute<T>;
};
template <class T>
struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};

struct ReduceSum {
  template <class T>
  using Sum = typename Wrapping<T>::type;
  template <class T>
  static Sum<T> start() {
    return 0;
  }
  template <class V>
  V operator()(V a, V b) const {
    return V(a + b);
  }
  static auto finish(auto sum, std::int64_t) { return sum; }
};

// Input 0 of `ctx` reduced over the dimensions in `reduced`, under the shape `out`.
template <class Op, class T>
Expected<Tensor> reduce(const KernelContext& ctx, const Tensor& x, std::vector<bool> reduced,
                        const Shape& out) {
  const Reduction r = Reduction::of(x.shape(), std::move(reduced));
  TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, out));
  Tensor in = x;
  if (r.tangled) {
    TROUPE_TRY(in, reduced_last(ctx, x, r.reduced));
  }
  TROUPE_TRY((Reduce<Op, T>::run(ctx, in.data<T>(), y.mutable_data<T>(), r)));
  return y;
}

}  // namespace troupe
