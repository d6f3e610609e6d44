// ListPush: a list with one element more.
#include "ops/kernels/lists/elements.hpp"

using namespace troupe;

namespace {

Status list_push_shape(InferenceContext& c) {
  if (!PartialShape::merge(c.shape(0), c.shape(1)).ok())
    return invalid_argument(fmt::format("value is {}, the elements of the list are {}",
                                        c.shape(1).text(), c.shape(0).text()));
  c.set(0, c.shape(0));
  return ok_status();
}
Status list_push(KernelContext& c) {
  const List& before = list_in(c.input(0));
  const Tensor& value = c.input(1);
  if (!before.empty() && before.get(before.size() - 1).dtype() != value.dtype())
    return invalid_argument(fmt::format("value is {}, the elements of the list are {}",
                                        dtype_name(value.dtype()),
                                        dtype_name(before.get(before.size() - 1).dtype())));
  Tensor list = changeable_list(c, 0);
  list_in(list).push(value);
  c.set_output(0, std::move(list));
  return ok_status();
}
std::vector<Output> list_push_grad(GradContext& c) {
  const Op popped = c.g.add({.op = "ListPop",
                             .inputs = {c.dy[0]},
                             .attrs = {{"T", c.x[1].dtype()}, {"shape", c.x[1].shape()}}});
  return {popped.output(0), popped.output(1)};
}

}  // namespace

TROUPE_OPS(list_push) {
  r.add({.name = "ListPush",
         .in = {"before: list", "value"},
         .out = {"list: list"},
         .types = kElements,
         .shape = list_push_shape,
         .grad = list_push_grad,
         .cheap = true,
         .doc = "The list with `value` appended. No element is copied."})
      .cpu(kernel<list_push>);
}
