// Pack: tensors stacked along a new dimension.
#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/joins.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status pack_shape(InferenceContext& c) {
  PartialShape one = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) {
    TROUPE_TRY(one, PartialShape::merge(one, c.shape(i)));
  }
  if (!one.known_rank()) return ok_status();
  TROUPE_TRY(int axis, c.axis(c.int_attr("axis"), one.rank() + 1));
  auto dims = one.dims();
  dims.insert(dims.begin() + axis, c.inputs());
  TROUPE_TRY(PartialShape shape, PartialShape::make(dims));
  c.set(0, std::move(shape));
  return ok_status();
}
struct Pack final : Kernel {
  explicit Pack(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& one = ctx.input(0).shape();
    for (int i = 1; i < ctx.inputs(); ++i)
      if (ctx.input(i).shape() != one)
        return invalid_argument(fmt::format("values[0] is {} and values[{}] {}", one.text(), i,
                                            ctx.input(i).shape().text()));
    TROUPE_TRY(int a, checked_axis(axis, one.rank() + 1));
    std::vector<std::int64_t> dims(one.dims().begin(), one.dims().end());
    dims.insert(dims.begin() + a, ctx.inputs());
    TROUPE_TRY(Shape whole, Shape::make(dims));
    TROUPE_TRY(Tensor y, join(ctx, whole, a,
                              std::vector<std::int64_t>(std::size_t(ctx.inputs()),
                                                        one.elements(a, one.rank()))));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t axis;
};
std::vector<Output> pack_grad(GradContext& c) {
  return c.g
      .add(NodeSpec{.op = "Unpack",
                    .inputs = {c.dy[0]},
                    .attrs = {{"axis", c.int_attr("axis")}, {"N", std::int64_t(c.x.size())}}})
      .outputs();
}

}  // namespace

TROUPE_OPS(pack) {
  r.add({.name = "Pack",
         .in = {"values: T..."},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axis: int = 0"},
         .shape = pack_shape,
         .value = joined_ints,
         .grad = pack_grad,
         .doc = "The values, all of the same shape, stacked along a new dimension `axis`."})
      .cpu(make_kernel<Pack>)
      .cuda(cuda::moving<make_kernel<Pack>>, kPlainTypes);
}
