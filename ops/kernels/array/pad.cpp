// Pad: a tensor in a frame.
#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

using Ints = std::vector<std::int64_t>;

// paddings: before and after, dimension by dimension.
Expected<PartialShape> padded(const PartialShape& x, const Ints& paddings) {
  if (!x.known_rank()) return x;
  if (paddings.size() != 2 * std::size_t(x.rank()))
    return wrong_length("paddings (before and after per dimension)", paddings.size(), x.rank());
  PartialShape y = x;
  for (int i = 0; i < x.rank(); ++i) {
    std::int64_t before = paddings[2 * std::size_t(i)], after = paddings[2 * std::size_t(i) + 1];
    std::int64_t d = x.known(i) ? x.dim(i).value() : 0;
    if (before < 0 || after < 0 || __builtin_add_overflow(d, before, &d) ||
        __builtin_add_overflow(d, after, &d))
      return invalid_argument(fmt::format("paddings {} and {} of dimension {}", before, after, i));
    if (x.known(i)) y.set_dim(i, d);
  }
  return y;
}
Status pad_shape(InferenceContext& c) {
  TROUPE_TRY(check_number("value", c.float_attr("value"), c.dtype(0)));
  TROUPE_TRY(PartialShape shape, padded(c.shape(0), c.ints_attr("paddings")));
  c.set(0, std::move(shape));
  return ok_status();
}
struct Pad final : Kernel {
  explicit Pad(const KernelSpec& s)
      : paddings(s.ints_attr("paddings")), value(s.float_attr("value")) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(PartialShape dims, padded(ctx.input(0).shape(), paddings));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    std::int64_t offset = 0;  // of x in y; nothing may be padded by any amount
    const Strides strides = strides_of(shape);
    if (ctx.input(0).elements() != 0)
      for (std::size_t i = 0; i < std::size_t(shape.rank()); ++i)
        offset += strides[i] * paddings[2 * i];
    return place(ctx, shape, offset, value);
  }
  Ints paddings;
  double value;
};
std::vector<Output> pad_grad(GradContext& c) {
  Ints begin;
  const Ints& paddings = c.ints_attr("paddings");
  for (std::size_t i = 0; i < paddings.size(); i += 2) begin.push_back(paddings[i]);
  return {c.g.add("Slice", {c.dy[0], i64_const(c.g, begin), c.g.add("Shape", {c.x[0]})})};
}

}  // namespace

TROUPE_OPS(pad) {
  r.add({.name = "Pad",
         .in = {"x"},
         .out = {"y"},
         .types = kPlainTypes,
         .attrs = {"paddings: list(int)", "value: float = 0.0"},
         .shape = pad_shape,
         .grad = pad_grad,
         .doc = "x padded with `value`. `paddings` lists the amounts before and after each "
                "dimension: [before0, after0, before1, after1, ...]."})
      .cpu(make_kernel<Pad>)
      .cuda(cuda::moving<make_kernel<Pad>>);
}
