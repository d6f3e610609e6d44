// ReverseSequence: the beginning of each row of a batch the other way round.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"

using namespace troupe;

namespace {

// Where time and batch are, of a tensor of that shape, and whether there is a length for each row.
struct SequenceAxes {
  int time = 0, batch = 0;
  static Expected<SequenceAxes> of(const PartialShape& x, const PartialShape& lengths,
                                   std::int64_t time, std::int64_t batch) {
    SequenceAxes axes;
    TROUPE_TRY(axes.time, checked_axis(time, x.rank()));
    TROUPE_TRY(axes.batch, checked_axis(batch, x.rank()));
    if (axes.time == axes.batch)
      return invalid_argument(fmt::format("axis and batch_axis are both {}", axes.time));
    const bool fits =
        !lengths.known_rank() ||
        (lengths.rank() == 1 && (!lengths.known(0) || !x.known(axes.batch) ||
                                 std::int64_t(lengths[0]) == std::int64_t(x[axes.batch])));
    if (!fits)
      return invalid_argument(
          fmt::format("lengths {} must be a vector, one for each of dimension "
                      "{} of x {}",
                      lengths.text(), axes.batch, x.text()));
    return axes;
  }
};

Status reverse_sequence_shape(InferenceContext& c) {
  if (c.shape(0).known_rank())
    TROUPE_TRY(
        SequenceAxes::of(c.shape(0), c.shape(1), c.int_attr("axis"), c.int_attr("batch_axis")));
  return same_shape(c);
}
struct ReverseSequence final : Kernel {
  explicit ReverseSequence(const KernelSpec& s)
      : axis(s.int_attr("axis")), batch_axis(s.int_attr("batch_axis")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &x = ctx.input(0), &lengths = ctx.input(1);
    TROUPE_TRY(const SequenceAxes axes,
               SequenceAxes::of(x.shape(), lengths.shape(), axis, batch_axis));
    TROUPE_TRY(const auto size, host_ints(lengths, "lengths"));
    const std::int64_t time = x.dim(axes.time), batch = x.dim(axes.batch);
    for (std::size_t i = 0; i < size.size(); ++i)
      if (size[i] < 0 || size[i] > time)
        return invalid_argument(
            fmt::format("lengths[{}] = {} is outside [0, {}]", i, size[i], time));
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), x.shape()));
    // Rows are what lies behind both dimensions; `step` of them are one step of either.
    const int last = std::max(axes.time, axes.batch) + 1;
    const std::int64_t row = x.shape().elements(last, x.rank());
    const std::int64_t time_step = x.shape().elements(axes.time + 1, last);
    const std::int64_t batch_step = x.shape().elements(axes.batch + 1, last);
    const Moves moves(x.dtype());
    const void* from = x.raw();
    void* to = y.mutable_raw();
    const Chunks chunks = row_chunks(x.shape().elements(0, last), row);
    if (y.elements() != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k) {
          const std::int64_t t = k / time_step % time;
          const std::int64_t n = size[std::size_t(k / batch_step % batch)];
          const std::int64_t source = t < n ? k + (n - 1 - 2 * t) * time_step : k;
          moves.copy(moves.at(from, source * row), row, moves.at(to, k * row));
        }
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  const std::int64_t axis, batch_axis;
};
std::vector<Output> reverse_sequence_grad(GradContext& c) {
  return {c.g.add("ReverseSequence", {c.dy[0], c.x[1]},
                  {{"axis", c.int_attr("axis")}, {"batch_axis", c.int_attr("batch_axis")}}),
          Output()};
}

}  // namespace

TROUPE_OPS(reverse_sequence) {
  r.add({.name = "ReverseSequence",
         .in = {"x", "lengths: Tidx"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"Tidx: type {i32 i64} = i64", "axis: int = 1", "batch_axis: int = 0"},
         .shape = reverse_sequence_shape,
         .grad = reverse_sequence_grad,
         .doc = "For each slice i of x along batch_axis, the first lengths[i] slices along `axis` "
                "in reverse order; the rest stays in place."})
      .cpu(make_kernel<ReverseSequence>);
}
