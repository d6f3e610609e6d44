// Roll and Shift: elements moved along dimensions, around the end or over it.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"

using namespace troupe;

namespace {

using Longs = std::vector<std::int64_t>;

Status check_lengths(const Longs& shift, const Longs& axes) {
  if (shift.size() == axes.size()) return ok_status();
  return invalid_argument(fmt::format("{} shifts for {} axes", shift.size(), axes.size()));
}
Status check_roll(const Longs& shift, const Longs& axes, int rank) {
  TROUPE_TRY(check_lengths(shift, axes));
  for (std::int64_t axis : axes) TROUPE_TRY(checked_axis(axis, rank));
  return ok_status();
}
Status roll_shape(InferenceContext& c) {
  TROUPE_TRY(check_lengths(c.ints_attr("shift"), c.ints_attr("axes")));  // the gradient needs that
  if (c.shape(0).known_rank())
    TROUPE_TRY(check_roll(c.ints_attr("shift"), c.ints_attr("axes"), c.shape(0).rank()));
  return same_shape(c);
}
struct Roll final : Kernel {
  explicit Roll(const KernelSpec& s) : shift(s.ints_attr("shift")), axes(s.ints_attr("axes")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Shape& shape = x.shape();
    TROUPE_TRY(check_roll(shift, axes, shape.rank()));
    // By how much, from 0 to the size; the shifts of an axis that is named twice add up.
    std::array<std::int64_t, kMaxRank> by{};
    int last = 0;  // dimensions behind it stay as they are
    for (std::size_t i = 0; i < axes.size(); ++i) {
      TROUPE_TRY(const int axis, checked_axis(axes[i], shape.rank()));
      const std::int64_t n = shape.dim(axis);
      if (n == 0) continue;
      by[std::size_t(axis)] = (by[std::size_t(axis)] + (shift[i] % n + n) % n) % n;
      last = std::max(last, axis + 1);
    }
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
    // Along the last of them each line is two pieces that change places.
    const std::int64_t line = shape.elements(std::max(last - 1, 0), shape.rank());
    const std::int64_t lines = last == 0 ? 1 : shape.elements(0, last - 1);
    const std::int64_t end =
        last == 0 ? 0 : by[std::size_t(last - 1)] * shape.elements(last, shape.rank());
    const Moves moves(x.dtype());
    const void* from = x.raw();
    void* to = y.mutable_raw();
    const Chunks chunks = row_chunks(lines, line);
    if (y.elements() != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k) {
          std::int64_t source = 0, rest = k, stride = 1;
          for (int d = last - 1; d-- > 0;) {
            const std::int64_t n = shape.dim(d), at = rest % n - by[std::size_t(d)];
            source += (at < 0 ? at + n : at) * stride;
            rest /= n;
            stride *= n;
          }
          moves.copy(moves.at(from, (source + 1) * line - end), end, moves.at(to, k * line));
          moves.copy(moves.at(from, source * line), line - end, moves.at(to, k * line + end));
        }
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  Longs shift, axes;
};
std::vector<Output> roll_grad(GradContext& c) {
  Longs back = c.ints_attr("shift");
  // The lowest integer has no opposite; its distance from 0 is a multiple of few sizes, so in
  // parts.
  Longs axes = c.ints_attr("axes");
  for (std::size_t i = 0, n = back.size(); i < n; ++i) {
    if (back[i] != INT64_MIN) {
      back[i] = -back[i];
      continue;
    }
    back[i] = INT64_MAX;
    back.push_back(1);
    axes.push_back(axes[i]);
  }
  return {c.g.add("Roll", {c.dy[0]}, {{"shift", back}, {"axes", axes}})};
}

Status shift_shape(InferenceContext& c) {
  if (c.shape(0).known_rank()) TROUPE_TRY(checked_axis(c.int_attr("axis"), c.shape(0).rank()));
  return same_shape(c);
}
struct Shift final : Kernel {
  explicit Shift(const KernelSpec& s) : by(s.int_attr("by")), axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const int along, checked_axis(axis, x.rank()));
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), x.shape()));
    const RowBlocks blocks(x.shape(), along);
    const std::int64_t n = blocks.size, row = blocks.row;
    // What stays inside is [begin, end) of the output.
    const std::int64_t begin = std::clamp<std::int64_t>(by, 0, n);
    const std::int64_t end = by >= 0 ? n : n + std::max(by, -n);
    const Moves moves(x.dtype());
    const std::size_t size = dtype_size(x.dtype());
    const void* from = x.raw();
    void* to = y.mutable_raw();
    const Chunks chunks = row_chunks(blocks.outer, n * row);
    if (y.elements() != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        for (std::int64_t b = chunks[c].begin; b < chunks[c].end; ++b) {
          const std::int64_t first = b * n * row;
          std::memset(moves.at(to, first), 0, std::size_t(begin * row) * size);
          if (begin < end)
            moves.copy(moves.at(from, first + (begin - by) * row), (end - begin) * row,
                       moves.at(to, first + begin * row));
          std::memset(moves.at(to, first + end * row), 0, std::size_t((n - end) * row) * size);
        }
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t by, axis;
};
std::vector<Output> shift_grad(GradContext& c) {
  const std::int64_t by = c.int_attr("by");  // the lowest and its neighbour move all over the end
  return {c.g.add("Shift", {c.dy[0]},
                  {{"by", by == INT64_MIN ? INT64_MAX : -by}, {"axis", c.int_attr("axis")}})};
}

}  // namespace

TROUPE_OPS(roll) {
  r.add({.name = "Roll",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"shift: list(int)", "axes: list(int)"},
         .shape = roll_shape,
         .grad = roll_grad,
         .doc =
             "y[(i + shift) mod n] = x[i] along each of `axes`: elements moved over the end return "
             "at the beginning. If an axis occurs twice, its shifts add up."})
      .cpu(make_kernel<Roll>);
  r.add({.name = "Shift",
         .in = {"x"},
         .out = {"y"},
         .types = kPlainTypes,
         .attrs = {"by: int", "axis: int = 0"},
         .shape = shift_shape,
         .grad = shift_grad,
         .doc = "y[i + by] = x[i] along `axis`: elements moved over the end are lost, and zeros "
                "(false) fill the gap."})
      .cpu(make_kernel<Shift>);
}
