// DynamicPartition: slices sorted into tensors by the number of their part.
#include <fmt/core.h>

#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"

using namespace troupe;

namespace {

// The shape of a part: any number of the slices of data that stand at the places of `partitions`.
Expected<PartialShape> part_shape(const PartialShape& data, const PartialShape& partitions) {
  if (!data.known_rank() || !partitions.known_rank()) return PartialShape::unknown();
  if (!begins_with(data, partitions))
    return invalid_argument(fmt::format("partitions {} are not the first dimensions of data {}",
                                        partitions.text(), data.text()));
  return append(PartialShape{PartialShape::kUnknown}, data, partitions.rank());
}

Status dynamic_partition_shape(InferenceContext& c) {
  TROUPE_TRY(const PartialShape part, part_shape(c.shape(0), c.shape(1)));
  for (int i = 0; i < c.outputs(); ++i) c.set(i, part);
  return ok_status();
}

Status dynamic_partition(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &partitions = ctx.input(1);
  TROUPE_TRY(PartialShape part, part_shape(data.shape(), partitions.shape()));
  TROUPE_TRY(check_indices(partitions, ctx.outputs(), "partitions"));
  const std::int64_t n = partitions.elements();
  std::vector<std::int64_t> counts(std::size_t(ctx.outputs())), at(static_cast<std::size_t>(n));
  with_indices(partitions, [&](const auto* p) {
    for (std::int64_t i = 0; i < n; ++i) at[std::size_t(i)] = counts[std::size_t(p[i])]++;
  });
  std::vector<Tensor> parts;
  std::vector<void*> to;
  for (std::int64_t count : counts) {
    part.set_dim(0, count);
    TROUPE_TRY(const Shape shape, Shape::make(part.dims()));
    TROUPE_TRY(Tensor y, ctx.allocate(data.dtype(), shape));
    to.push_back(y.elements() != 0 ? y.mutable_raw() : nullptr);
    parts.push_back(std::move(y));
  }
  const std::int64_t row = data.shape().elements(partitions.rank(), data.rank());
  const Moves moves(data.dtype());
  const Chunks chunks = row_chunks(n, row);
  if (data.elements() != 0)
    ctx.parallel(chunks.count, [&](std::int64_t c) {
      with_indices(partitions, [&, r = chunks[c]](const auto* p) {
        for (std::int64_t i = r.begin; i < r.end; ++i)
          moves.copy(moves.at(data.raw(), i * row), row,
                     moves.at(to[std::size_t(p[i])], at[std::size_t(i)] * row));
      });
    });
  for (int i = 0; i < ctx.outputs(); ++i) ctx.set_output(i, std::move(parts[std::size_t(i)]));
  return ok_status();
}

// The slices back in their places, whose numbers are sorted as the slices were.
std::vector<Output> dynamic_partition_grad(GradContext& c) {
  const Output zero = scalar_const(c.g, DType::i64, 0), one = scalar_const(c.g, DType::i64, 1);
  const Output flat = c.g.add("Reshape", {c.x[1], i64_const(c.g, {-1})});
  const Output numbers = c.g.add("Range", {zero, c.g.add("Size", {flat}), one});
  const Op sorted = c.g.add(NodeSpec{.op = "DynamicPartition",
                                     .inputs = {numbers, flat},
                                     .attrs = {{"N", std::int64_t(c.dy.size())}}});
  NodeSpec back{.op = "DynamicStitch", .inputs = sorted.outputs()};
  back.inputs.insert(back.inputs.end(), c.dy.begin(), c.dy.end());
  const Output rows = c.g.add(std::move(back)).output();
  return {c.g.add("Reshape", {rows, c.g.add("Shape", {c.x[0]})}), Output()};
}

}  // namespace

TROUPE_OPS(dynamic_partition) {
  r.add({.name = "DynamicPartition",
         .in = {"data", "partitions: Tindex"},
         .out = {"parts: T..."},
         .types = kAllTypes,
         .attrs = {"N: int", "Tindex: type {i32 i64} = i64"},
         .shape = dynamic_partition_shape,
         .grad = dynamic_partition_grad,
         .host = {"partitions"},
         .doc = "N tensors: parts[p] are the slices data[i, j, ...] with partitions[i, j] = p, in "
                "their order: [count, ...]. The shape of partitions begins that of data. A part "
                "outside [0, N) is an error."})
      // Not on devices that want to know shapes before a kernel has run.
      .on("CPU", kernel<dynamic_partition>);
}
