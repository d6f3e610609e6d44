// Reverse: the other way round along some dimensions.
#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

using Ints = std::vector<std::int64_t>;

Status reverse_shape(InferenceContext& c) {
  if (c.shape(0).known_rank()) TROUPE_TRY(axis_set(c.ints_attr("axes"), c.shape(0).rank()));
  return same_shape(c);
}
struct Reverse final : Kernel {
  explicit Reverse(const KernelSpec& s) : axes(s.ints_attr("axes")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    TROUPE_TRY(auto flipped, axis_set(axes, shape.rank()));
    Strides strides = strides_of(shape);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < flipped.size(); ++i) {
      if (!flipped[i]) continue;
      offset += strides[i] * std::max<std::int64_t>(0, shape.dim(int(i)) - 1);
      strides[i] = -strides[i];
    }
    return view_copy(ctx, shape, strides, offset);
  }
  Ints axes;
};
std::vector<Output> reverse_grad(GradContext& c) {
  return {c.g.add("Reverse", {c.dy[0]}, {{"axes", c.ints_attr("axes")}})};
}

}  // namespace

TROUPE_OPS(reverse) {
  r.add({.name = "Reverse",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axes: list(int) = []"},
         .shape = reverse_shape,
         .grad = reverse_grad,
         .doc = "x reversed along `axes`, or along all dimensions if the list is empty."})
      .cpu(make_kernel<Reverse>)
      .cuda(cuda::moving<make_kernel<Reverse>>, kPlainTypes);
}
