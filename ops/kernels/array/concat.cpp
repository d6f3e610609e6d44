// Concat and its gradient: tensors one after another.
#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/joins.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

// The shape of `shapes` joined along `axis`; -1 where unknown.
Expected<PartialShape> joined(const std::vector<PartialShape>& shapes, std::int64_t axis) {
  PartialShape all;  // what is known of the dimensions but `axis`
  std::int64_t sum = 0;
  for (const PartialShape& s : shapes) {
    if (!s.known_rank()) {
      sum = -1;
      continue;
    }
    TROUPE_TRY(int a, checked_axis(axis, s.rank()));
    if (sum < 0 || !s.known(a))
      sum = -1;
    else if (__builtin_add_overflow(sum, s.dim(a).value(), &sum))
      return invalid_argument(fmt::format("axis {} of all together is too long", axis));
    PartialShape rest = s;
    rest.set_dim(a, PartialShape::kUnknown);
    auto merged = PartialShape::merge(all, rest);
    if (!merged.ok())
      return invalid_argument(fmt::format("cannot join {} along axis {}: the others have {}",
                                          s.text(), axis, all.text()));
    all = std::move(merged).value();
  }
  if (!all.known_rank()) return all;
  TROUPE_TRY(int a, checked_axis(axis, all.rank()));
  all.set_dim(a, sum);
  return all;
}

Status concat_shape(InferenceContext& c) {
  std::vector<PartialShape> shapes;
  for (int i = 0; i < c.inputs(); ++i) shapes.push_back(c.shape(i));
  TROUPE_TRY(PartialShape shape, joined(shapes, c.int_attr("axis")));
  c.set(0, std::move(shape));
  return ok_status();
}
struct Concat final : Kernel {
  explicit Concat(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    std::vector<PartialShape> shapes;
    for (int i = 0; i < ctx.inputs(); ++i) shapes.push_back(ctx.input(i).shape());
    TROUPE_TRY(PartialShape shape, joined(shapes, axis));
    TROUPE_TRY(Shape whole, Shape::make(shape.dims()));
    TROUPE_TRY(int a, checked_axis(axis, whole.rank()));
    std::vector<std::int64_t> widths;
    for (int i = 0; i < ctx.inputs(); ++i)
      widths.push_back(ctx.input(i).shape().elements(a, whole.rank()));
    TROUPE_TRY(Tensor y, join(ctx, whole, a, widths));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t axis;
};

// One part per entry of `shapes`: shapes of tensors that Concat joined.
Status concat_grad_shape(InferenceContext& c) {
  for (int i = 1; i < c.inputs(); ++i) {
    TROUPE_TRY(PartialShape shape, c.listed_shape(i));
    c.set(i - 1, std::move(shape));
  }
  return ok_status();
}
struct ConcatGrad final : Kernel {
  explicit ConcatGrad(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& whole = ctx.input(0).shape();
    TROUPE_TRY(int a, checked_axis(axis, whole.rank()));
    std::vector<Shape> shapes;
    std::vector<PartialShape> partial;
    std::vector<std::int64_t> widths;
    for (int i = 1; i < ctx.inputs(); ++i) {
      TROUPE_TRY(auto dims, host_ints(ctx.input(i), "shapes"));
      TROUPE_TRY(Shape shape, checked_shape(dims));
      shapes.push_back(shape);
      partial.emplace_back(shape);
      widths.push_back(shape.rank() == whole.rank() ? shape.elements(a, whole.rank()) : 0);
    }
    TROUPE_TRY(PartialShape sum, joined(partial, axis));
    if (sum != PartialShape(whole))
      return invalid_argument(
          fmt::format("parts that join to {} cannot come from {}", sum.text(), whole.text()));
    return take_apart(ctx, shapes, a, widths);
  }
  std::int64_t axis;
};
std::vector<Output> concat_grad(GradContext& c) {
  if (c.x.size() == 1) return {c.dy[0]};
  NodeSpec spec{.op = "ConcatGrad", .inputs = {c.dy[0]}, .attrs = {{"axis", c.int_attr("axis")}}};
  for (Output x : c.x) spec.inputs.push_back(c.g.add("Shape", {x}));
  return c.g.add(std::move(spec)).outputs();
}

// One gradient for each part; joined again they are that of dy.
std::vector<Output> concat_grad_grad(GradContext& c) {
  std::vector<Output> dx(c.x.size());
  dx[0] = c.g.add(NodeSpec{.op = "Concat", .inputs = c.dy, .attrs = {{"axis", c.int_attr("axis")}}})
              .output();
  return dx;
}

}  // namespace

TROUPE_OPS(concat) {
  r.add({.name = "Concat",
         .in = {"values: T..."},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axis: int = 0"},
         .shape = concat_shape,
         .value = joined_ints,
         .grad = concat_grad,
         .doc =
             "The values concatenated along `axis`, the only dimension in which their shapes may "
             "differ; a negative axis counts from the end."})
      .cpu(make_kernel<Concat>)
      .cuda(cuda::moving<make_kernel<Concat>>, kPlainTypes);
  r.add({.name = "ConcatGrad",
         .in = {"dy", "shapes: Tshape..."},
         .out = {"dx: T..."},
         .types = kAllTypes,
         .attrs = {"Tshape: type {i64} = i64", "axis: int = 0"},
         .shape = concat_grad_shape,
         .grad = concat_grad_grad,
         .host = {"shapes"},
         .doc = "dy split along `axis` into tensors of the given shapes, which must add up to its "
                "own: the gradient of Concat."})
      .cpu(make_kernel<ConcatGrad>)
      .cuda(cuda::moving<make_kernel<ConcatGrad>>, kPlainTypes);
}
