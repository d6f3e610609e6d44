// Unpack: the slices of a tensor.
#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/joins.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status wrong_count(const PartialShape& x, int axis, std::int64_t n) {
  return invalid_argument(
      fmt::format("dimension {} of {} is not N = {}, the number of outputs", axis, x.text(), n));
}
Status unpack_shape(InferenceContext& c) {
  const PartialShape& x = c.shape(0);
  if (!x.known_rank()) return ok_status();
  TROUPE_TRY(int axis, c.axis(c.int_attr("axis"), x.rank()));
  if (x.known(axis) && x.dim(axis) != c.outputs()) return wrong_count(x, axis, c.outputs());
  auto dims = x.dims();
  dims.erase(dims.begin() + axis);
  TROUPE_TRY(PartialShape part, PartialShape::make(dims));
  for (int i = 0; i < c.outputs(); ++i) c.set(i, part);
  return ok_status();
}
struct Unpack final : Kernel {
  explicit Unpack(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& x = ctx.input(0).shape();
    TROUPE_TRY(int a, checked_axis(axis, x.rank()));
    if (x.dim(a) != ctx.outputs()) return wrong_count(x, a, ctx.outputs());
    std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
    dims.erase(dims.begin() + a);
    TROUPE_TRY(Shape part, Shape::make(dims));
    const auto n = std::size_t(ctx.outputs());
    return take_apart(ctx, std::vector<Shape>(n, part), a,
                      std::vector<std::int64_t>(n, part.elements(a, part.rank())));
  }
  std::int64_t axis;
};
void unpack_ints(InferenceContext& c) {
  const KnownInts* x = c.known_ints(0);
  for (int i = 0; x && !x->scalar && x->size() == c.outputs() && i < c.outputs(); ++i)
    c.set_ints(i, {true, {x->elements[std::size_t(i)]}});
}
std::vector<Output> unpack_grad(GradContext& c) {
  return {c.g.add(NodeSpec{.op = "Pack", .inputs = c.dy, .attrs = {{"axis", c.int_attr("axis")}}})
              .output()};
}

}  // namespace

TROUPE_OPS(unpack) {
  r.add({.name = "Unpack",
         .in = {"x"},
         .out = {"parts: T..."},
         .types = kAllTypes,
         .attrs = {"axis: int = 0", "N: int"},
         .shape = unpack_shape,
         .value = unpack_ints,
         .grad = unpack_grad,
         .doc = "The N slices of x along `axis`, without that dimension: the inverse of Pack."})
      .cpu(make_kernel<Unpack>)
      .cuda(cuda::moving<make_kernel<Unpack>>, kPlainTypes);
}
