// ListUnstack: the rows of a tensor as a list.
#include "ops/kernels/lists/elements.hpp"

using namespace troupe;

namespace {

Status list_unstack_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  if (!c.shape(0).known_rank()) return ok_status();
  auto dims = c.shape(0).dims();
  dims.erase(dims.begin());
  TROUPE_TRY(PartialShape row, PartialShape::make(dims));
  c.set(0, std::move(row));
  return ok_status();
}
Status list_unstack(KernelContext& c) {
  const Tensor& x = c.input(0);
  if (x.rank() < 1) return invalid_argument("x must have rank 1 or more, not []");
  TROUPE_TRY(Shape row, Shape::make(x.shape().dims().subspan(1)));
  // Rows without elements are as many as a shape says, not as many as there is memory for.
  constexpr std::int64_t kMostEmpty = std::int64_t{1} << 20;
  if (row.elements() == 0 && x.dim(0) > kMostEmpty)
    return resource_exhausted(fmt::format("a list of {} rows without elements", x.dim(0)));
  List list;
  for (std::int64_t i = 0; i < x.dim(0); ++i) list.push(x.rows(i, i + 1).reshaped(row));
  c.set_output(0, list_tensor(std::move(list)));
  return ok_status();
}
std::vector<Output> list_unstack_grad(GradContext& c) {
  return {
      c.g.add("ListUnstackGrad", {c.dy[0], c.g.add("Shape", {c.x[0]})}, {{"T", c.x[0].dtype()}})};
}

}  // namespace

TROUPE_OPS(list_unstack) {
  r.add({.name = "ListUnstack",
         .in = {"x"},
         .out = {"list: list"},
         .types = kAllTypes,
         .shape = list_unstack_shape,
         .grad = list_unstack_grad,
         .doc = "A list of the slices of x along its first dimension, which share its memory."})
      .cpu(kernel<list_unstack>);
}
