// Sort, ArgSort and TopK: elements along one dimension in their order.
#include <fmt/core.h>

#include <algorithm>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/order.hpp"

using namespace troupe;

namespace {

const char* const kSortOrder =
    " Equal elements keep their order, and -0 equals 0; a NaN is above all numbers, as NumPy "
    "sorts.";

// The first `keep` elements of each line along `axis`, and where they stood; either may be
// unwanted.
struct InOrder {
  int axis;
  std::int64_t keep;
  bool descending;

  void run(const KernelContext& ctx, const Tensor& x, Tensor* values, Tensor* places) const {
    const RowBlocks blocks(x.shape(), axis);
    const Moves moves(x.dtype());
    const void* from = x.raw();
    void* to = values ? values->mutable_raw() : nullptr;
    auto* at = places ? places->mutable_data<std::int64_t>() : nullptr;
    const Chunks chunks = row_chunks(blocks.outer * blocks.row, blocks.size);
    if (chunks.count == 0 || keep == 0) return;
    ctx.parallel(chunks.count, [&](std::int64_t c) {
      std::vector<Ranked> line(static_cast<std::size_t>(blocks.size));
      for (std::int64_t k = chunks[c].begin; k < chunks[c].end && !ctx.cancelled(); ++k) {
        const std::int64_t block = k / blocks.row, column = k % blocks.row;
        const std::int64_t first = block * blocks.size * blocks.row + column;
        rank_elements(x, first, blocks.row, descending, line);
        bring_first(line);
        for (std::int64_t i = 0; i < keep; ++i) {
          const std::int64_t out = (block * keep + i) * blocks.row + column;
          const std::int64_t place = line[std::size_t(i)].at;
          if (to) moves.copy(moves.at(from, first + place * blocks.row), 1, moves.at(to, out));
          if (at) at[out] = place;
        }
      }
    });
  }

 private:
  // The lowest `keep` of a line, to its beginning and in their order.
  void bring_first(std::vector<Ranked>& line) const {
    const auto begin = line.begin(), end = begin + keep;
    if (keep * 16 <= std::int64_t(line.size())) {
      // Of a few most others are told by one comparison with the highest of them.
      std::make_heap(begin, end);
      for (auto other = end; other != line.end(); ++other) {
        if (!(*other < *begin)) continue;
        std::pop_heap(begin, end);
        end[-1] = *other;
        std::push_heap(begin, end);
      }
      return std::sort_heap(begin, end);
    }
    if (end != line.end()) std::nth_element(begin, end, line.end());
    std::sort(begin, end);
  }
};

Status sorted_shape(InferenceContext& c) {
  if (c.shape(0).known_rank()) TROUPE_TRY(checked_axis(c.int_attr("axis"), c.shape(0).rank()));
  return same_shape(c);
}
struct Sort final : Kernel {
  explicit Sort(const KernelSpec& s)
      : axis(s.int_attr("axis")), descending(s.bool_attr("descending")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const int along, checked_axis(axis, x.rank()));
    TROUPE_TRY(Tensor places, ctx.allocate(DType::i64, x.shape()));
    const InOrder order{along, x.dim(along), descending};
    if (ctx.outputs() == 1) {
      order.run(ctx, x, nullptr, &places);
      ctx.set_output(0, std::move(places));
      return ok_status();
    }
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), x.shape()));
    order.run(ctx, x, &y, &places);
    ctx.set_output(0, std::move(y));
    ctx.set_output(1, std::move(places));
    return ok_status();
  }
  std::int64_t axis;
  bool descending;
};

Expected<PartialShape> top_k_of(const PartialShape& x, std::int64_t k) {
  if (k < 0) return invalid_argument(fmt::format("k is {}; it must not be negative", k));
  if (!x.known_rank()) return PartialShape::unknown();
  if (x.rank() < 1) return invalid_argument("x must have rank 1 or more, not " + x.text());
  auto dims = x.dims();
  if (x.known(x.rank() - 1) && dims.back() < k)
    return invalid_argument(
        fmt::format("k is {}, but the last dimension of x {} has {}", k, x.text(), dims.back()));
  dims.back() = k;
  return PartialShape::make(dims);
}
Status top_k_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, top_k_of(c.shape(0), c.int_attr("k")));
  c.set(0, shape);
  c.set(1, std::move(shape));
  return ok_status();
}
struct TopK final : Kernel {
  explicit TopK(const KernelSpec& s) : k(s.int_attr("k")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(PartialShape shape, top_k_of(x.shape(), k));
    TROUPE_TRY(Tensor values, ctx.allocate(x.dtype(), shape.shape()));
    TROUPE_TRY(Tensor places, ctx.allocate(DType::i64, shape.shape()));
    InOrder{x.rank() - 1, k, true}.run(ctx, x, &values, &places);
    ctx.set_output(0, std::move(values));
    ctx.set_output(1, std::move(places));
    return ok_status();
  }
  std::int64_t k;
};

// Where an element went to, its gradient comes from.
std::vector<Output> from_places(GradContext& c, std::int64_t axis) {
  return {c.g.add("ScatterAlong", {c.dy[0], c.y[1], c.g.add("Shape", {c.x[0]})}, {{"axis", axis}})};
}
std::vector<Output> sort_grad(GradContext& c) { return from_places(c, c.int_attr("axis")); }
std::vector<Output> top_k_grad(GradContext& c) { return from_places(c, -1); }

}  // namespace

TROUPE_OPS(sort) {
  r.add({.name = "Sort",
         .in = {"x"},
         .out = {"y", "indices: i64"},
         .types = kNumbersAndBool,
         .attrs = {"axis: int = -1", "descending: bool = false"},
         .shape = sorted_shape,
         .grad = sort_grad,
         .doc = std::string("The elements along `axis` in ascending or descending order, and their "
                            "original positions.") +
                kSortOrder})
      .cpu(make_kernel<Sort>);
  r.add({.name = "ArgSort",
         .in = {"x"},
         .out = {"indices: i64"},
         .types = kNumbersAndBool,
         .attrs = {"axis: int = -1", "descending: bool = false"},
         .shape = sorted_shape,
         .no_gradient = "an index",
         .doc = std::string("The positions of the elements along `axis`, in ascending or "
                            "descending order of the elements.") +
                kSortOrder})
      .cpu(make_kernel<Sort>);
  r.add({.name = "TopK",
         .in = {"x"},
         .out = {"values", "indices: i64"},
         .types = kNumbersAndBool,
         .attrs = {"k: int"},
         .shape = top_k_shape,
         .grad = top_k_grad,
         .doc = "The k largest elements along the last dimension, the largest first, and their "
                "positions; equal elements in order of position. -0 equals 0; a NaN is above all "
                "numbers, as in Max and ArgMax."})
      .cpu(make_kernel<TopK>);
}
