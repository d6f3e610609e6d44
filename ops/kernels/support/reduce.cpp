// What all reductions share: none of it depends on the reducer, little on the element type.
#include "ops/kernels/support/reduce.hpp"

#include <algorithm>

#include "ops/complex/reduce_loops.hpp"
#include "ops/kernels/support/moves.hpp"

namespace troupe {
namespace {

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

// The distance of rows of `count` elements that are written column by column: rows at multiples of
// 1 KiB would all have their place in the same few lines of the nearest cache.
std::int64_t pitch_of(std::int64_t count, std::int64_t size) {
  return count * size % 1024 == 0 ? count + 64 / size : count;
}

// A copy of `x` with the kept dimensions first, the reduced ones behind them, as rows that are
// `pitch` elements apart.
Expected<Tensor> reduced_last(const KernelContext& ctx, const Tensor& x, const Reduction& r,
                              std::int64_t pitch) {
  const std::vector<bool>& reduced = r.reduced;
  Shape shape;
  Strides strides{};
  const Strides from = strides_of(x.shape());
  for (bool last : {false, true})
    for (int i = 0; i < x.rank(); ++i)
      if (reduced[std::size_t(i)] == last) {
        strides[std::size_t(shape.rank())] = from[std::size_t(i)];
        shape.append(x.dim(i));
      }
  Strides to = strides_of(shape);
  for (int i = 0; i < r.kept.rank(); ++i) to[std::size_t(i)] = to[std::size_t(i)] / r.count * pitch;
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), Shape{r.outer, pitch}));
  strided_copy(ctx, x.dtype(), shape, x.raw(), strides, y.mutable_raw(), to);
  return y;
}

// One reduction: out[outer, inner] from in[outer, count, inner], of which rows (inner is 1) are
// `pitch` elements apart.
class Reducing {
 public:
  Reducing(const KernelContext& ctx, const ReduceLoops& loops, const Reduction& r,
           std::int64_t pitch, const Tensor& in, Tensor& out)
      : ctx_(ctx),
        loops_(loops),
        r_(r),
        pitch_(pitch),
        in_size_(std::int64_t(dtype_size(loops.in))),
        size_(std::int64_t(dtype_size(loops.sum))),
        in_(static_cast<const char*>(in.raw())),
        out_(static_cast<char*>(out.mutable_raw())) {}

  Status run() const {
    const std::int64_t results = r_.outer * r_.inner;
    if (results == 0) return ok_status();
    if (r_.count == 0) {
      std::vector<char> sums(std::size_t(results * size_));
      fill(sums.data(), results);
      write(sums.data(), 0, results);
      return ok_status();
    }
    return r_.inner == 1 ? rows() : columns();
  }

 private:
  Status rows() const {
    const Chunks leaves = sum_leaves(r_.count);
    if (leaves.count == 1) {
      const Chunks chunks = row_chunks(r_.outer, r_.count);
      ctx_.parallel(chunks.count, [&](std::int64_t c) {
        // The result is as large as the sum, but for f16 and bf16.
        constexpr std::int64_t kBlock = 256;
        alignas(16) char block[kBlock * 16];
        for (std::int64_t o = chunks[c].begin; o < chunks[c].end; o += kBlock) {
          const std::int64_t n = std::min(kBlock, chunks[c].end - o);
          if (pitch_ == r_.count)
            leaves_of(in_ + o * pitch_ * in_size_, r_.count, n, block);
          else
            for (std::int64_t i = 0; i < n; ++i)
              leaves_of(in_ + (o + i) * pitch_ * in_size_, r_.count, 1, block + i * size_);
          write(block, o, n);
        }
      });
      return ok_status();
    }
    std::vector<char> partial(std::size_t(r_.outer * leaves.count * size_));
    const Chunks chunks = sum_chunks(r_.outer * leaves.count);
    ctx_.parallel(chunks.count, [&](std::int64_t c) {
      for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k) {
        const Range range = leaves[k % leaves.count];
        leaves_of(in_ + (k / leaves.count * pitch_ + range.begin) * in_size_, range.size(), 1,
                  partial.data() + k * size_);
      }
    });
    for (std::int64_t o = 0; o < r_.outer; ++o) {
      char* p = partial.data() + o * leaves.count * size_;
      tree_sum(leaves.count, [&](std::int64_t a, std::int64_t b) {
        loops_.add(p + a * size_, p + b * size_, 1, 1);
      });
      write(p, o, 1);
    }
    return ok_status();
  }

  Status columns() const {
    const Chunks blocks = column_sum_leaves(r_.count, r_.inner);
    TROUPE_TRY(Tensor partial, ctx_.allocate(loops_.sum, Shape{r_.outer, blocks.count, r_.inner}));
    char* sums = static_cast<char*>(partial.mutable_raw());
    const std::int64_t row = r_.inner * size_;
    ctx_.parallel(r_.outer * blocks.count, [&](std::int64_t k) {
      const Range range = blocks[k % blocks.count];
      fill(sums + k * row, r_.inner);
      add_rows(sums + k * row,
               in_ + (k / blocks.count * r_.count + range.begin) * r_.inner * in_size_,
               range.size());
    });
    const Chunks strips = tree_columns(r_.inner);
    ctx_.parallel(r_.outer * strips.count, [&](std::int64_t k) {
      const Range columns = strips[k % strips.count];
      char* block = sums + k / strips.count * blocks.count * row + columns.begin * size_;
      tree_sum(blocks.count, [&](std::int64_t a, std::int64_t b) {
        loops_.add(block + a * row, block + b * row, columns.size(), 1);
      });
      write(block, k / strips.count * r_.inner + columns.begin, columns.size());
    });
    return ok_status();
  }

  void leaves_of(const char* x, std::int64_t n, std::int64_t count, void* sums) const {
    if (!is_half(loops_.in)) return loops_.leaves(x, n, count, sums);
    float wide[kSumLeaf];
    for (std::int64_t i = 0; i < count; ++i) {
      widen_row(loops_.in, x + i * n * in_size_, n, wide);
      loops_.leaves(wide, n, 1, static_cast<float*>(sums) + i);
    }
  }
  void add_rows(char* sums, const char* x, std::int64_t rows) const {
    if (!is_half(loops_.in)) return loops_.add(sums, x, r_.inner, rows);
    constexpr std::int64_t kBlock = 512;
    float wide[kBlock];
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < r_.inner; i += kBlock) {
        const std::int64_t n = std::min(kBlock, r_.inner - i);
        widen_row(loops_.in, x + (row * r_.inner + i) * in_size_, n, wide);
        loops_.add(sums + i * size_, wide, n, 1);
      }
  }
  void fill(char* sums, std::int64_t n) const {
    if (n == 0) return;
    std::memcpy(sums, loops_.start.data(), std::size_t(size_));
    for (std::int64_t i = 1; i < n; i *= 2)
      std::memcpy(sums + i * size_, sums, std::size_t(std::min(i, n - i) * size_));
  }
  // Results [first, first + n) from their sums, which are overwritten.
  void write(void* sums, std::int64_t first, std::int64_t n) const {
    if (loops_.finish != nullptr) loops_.finish(sums, n, r_.count);
    char* to = out_ + first * in_size_;
    if (is_half(loops_.in))
      narrow_row(static_cast<const float*>(sums), n, loops_.in, to);
    else
      std::memcpy(to, sums, std::size_t(n * size_));
  }

  const KernelContext& ctx_;
  const ReduceLoops& loops_;
  const Reduction& r_;
  const std::int64_t pitch_;
  const std::int64_t in_size_, size_;
  const char* in_;
  char* out_;
};

}  // namespace

std::span<const ReduceLoops> sum_table(DType dtype) {
  return is_complex(dtype) ? complex_sums() : reduce_table<ReduceSum>(Numbers{});
}

Expected<Tensor> reduce(const KernelContext& ctx, std::span<const ReduceLoops> table,
                        const Tensor& x, std::vector<bool> reduced, const Shape& out) {
  const auto loops = std::find_if(table.begin(), table.end(),
                                  [&](const ReduceLoops& l) { return l.in == x.dtype(); });
  if (loops == table.end())
    return unimplemented("no kernel for " + std::string(dtype_name(x.dtype())));
  const Reduction r = Reduction::of(x.shape(), std::move(reduced));
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), out));
  Tensor in = x;
  std::int64_t pitch = r.count;
  if (r.tangled && x.elements() > 0) {
    pitch = pitch_of(r.count, std::int64_t(dtype_size(x.dtype())));
    TROUPE_TRY(in, reduced_last(ctx, x, r, pitch));
  }
  TROUPE_TRY(Reducing(ctx, *loops, r, pitch, in, y).run());
  return y;
}

}  // namespace troupe
