#include "ops/kernels/support/joins.hpp"

#include <array>
#include <numeric>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"

namespace troupe {
namespace {

// Copies between `joined`, whose rows are `row` elements, and parts whose rows have the widths
// given. `copy(part, part offset, joined offset, n)`.
template <class Copy>
void walk(const KernelContext& ctx, std::int64_t outer, const std::vector<std::int64_t>& widths,
          Copy&& copy) {
  const std::int64_t row = std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
  const Chunks chunks = row_chunks(outer, row);
  if (chunks.count == 0 || row == 0) return;
  ctx.parallel(chunks.count, [&](std::int64_t c) {
    for (std::int64_t o = chunks[c].begin; o < chunks[c].end; ++o) {
      std::int64_t at = o * row;
      for (std::size_t p = 0; p < widths.size(); at += widths[p], ++p)
        if (widths[p] != 0) copy(p, o * widths[p], at, widths[p]);
    }
  });
}

// The same on a GPU: a copy for each part. `copy(part, joined offset, dims, strides of the part and
// of the joined)`.
template <class Copy>
Status each_part(std::int64_t outer, const std::vector<std::int64_t>& widths, Copy&& copy) {
  const std::int64_t row = std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
  std::int64_t at = 0;
  for (std::size_t p = 0; p < widths.size(); at += widths[p], ++p) {
    TROUPE_TRY(Shape dims, Shape::make(std::array{outer, widths[p]}));
    TROUPE_TRY(copy(p, at, dims, Strides{widths[p], 1}, Strides{row, 1}));
  }
  return ok_status();
}

}  // namespace

Expected<Tensor> join(const KernelContext& ctx, const Shape& shape, int axis,
                      const std::vector<std::int64_t>& widths) {
  TROUPE_TRY(Tensor y, ctx.allocate(ctx.input(0).dtype(), shape));
  const Moves moves(y.dtype());
  if (cuda::on_gpu(ctx)) {
    TROUPE_TRY(each_part(shape.elements(0, axis), widths,
                         [&](std::size_t p, std::int64_t at, const Shape& dims, const Strides& part,
                             const Strides& whole) {
                           return cuda::copy_strided(ctx, y.dtype(), dims, ctx.input(int(p)).raw(),
                                                     part.data(), moves.at(y.mutable_raw(), at),
                                                     whole.data());
                         }));
    return y;
  }
  walk(ctx, shape.elements(0, axis), widths,
       [&](std::size_t p, std::int64_t from, std::int64_t to, std::int64_t n) {
         moves.copy(moves.at(ctx.input(int(p)).raw(), from), n, moves.at(y.mutable_raw(), to));
       });
  return y;
}

Status take_apart(KernelContext& ctx, const std::vector<Shape>& shapes, int axis,
                  const std::vector<std::int64_t>& widths) {
  const Tensor& x = ctx.input(0);
  std::vector<Tensor> parts;
  for (const Shape& shape : shapes) {
    TROUPE_TRY(Tensor part, ctx.allocate(x.dtype(), shape));
    parts.push_back(std::move(part));
  }
  const Moves moves(x.dtype());
  if (cuda::on_gpu(ctx))
    TROUPE_TRY(each_part(x.shape().elements(0, axis), widths,
                         [&](std::size_t p, std::int64_t at, const Shape& dims, const Strides& part,
                             const Strides& whole) {
                           return cuda::copy_strided(ctx, x.dtype(), dims, moves.at(x.raw(), at),
                                                     whole.data(), parts[p].mutable_raw(),
                                                     part.data());
                         }));
  else
    walk(ctx, x.shape().elements(0, axis), widths,
         [&](std::size_t p, std::int64_t to, std::int64_t from, std::int64_t n) {
           moves.copy(moves.at(x.raw(), from), n, moves.at(parts[p].mutable_raw(), to));
         });
  for (std::size_t p = 0; p < parts.size(); ++p) ctx.set_output(int(p), std::move(parts[p]));
  return ok_status();
}

void joined_ints(InferenceContext& c) {
  if (c.result()[0].known_rank() && c.result()[0].rank() != 1) return;
  KnownInts out;
  for (int i = 0; i < c.inputs(); ++i) {
    const KnownInts* part = c.known_ints(i);
    const PartialShape& shape = c.shape(i);
    if (part)
      out.elements.insert(out.elements.end(), part->elements.begin(), part->elements.end());
    else if (shape.fully_known() && shape.shape().elements() <= std::int64_t(kMostKnownInts))
      out.elements.resize(out.elements.size() + std::size_t(shape.shape().elements()));
    else
      return;
    if (out.elements.size() > kMostKnownInts) return;
  }
  c.set_ints(0, std::move(out));
}

}  // namespace troupe
