// ListSet and its gradient: one element replaced, or one more.
#include "ops/kernels/lists/elements.hpp"

using namespace troupe;

namespace {

Status list_set_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(1, 0));
  if (!PartialShape::merge(c.shape(0), c.shape(2)).ok())
    return invalid_argument(fmt::format("value is {}, the elements of the list are {}",
                                        c.shape(2).text(), c.shape(0).text()));
  c.set(0, c.shape(0));
  return ok_status();
}
Status list_set(KernelContext& c) {
  const List& before = list_in(c.input(0));
  TROUPE_TRY(std::int64_t i, list_index(c, 1, before.size() + 1));
  const Tensor& value = c.input(2);
  if (!before.empty() && before.get(0).dtype() != value.dtype())
    return invalid_argument(fmt::format("value is {}, the elements of the list are {}",
                                        dtype_name(value.dtype()),
                                        dtype_name(before.get(0).dtype())));
  const bool more = i == before.size();
  Tensor list = changeable_list(c, 0);
  more ? list_in(list).push(value) : list_in(list).set(i, value);
  c.set_output(0, std::move(list));
  return ok_status();
}
std::vector<Output> list_set_grad(GradContext& c) {
  const Op parts = c.g.add({.op = "ListSetGrad",
                            .inputs = {c.dy[0], c.x[1], c.x[0]},
                            .attrs = {{"T", c.x[2].dtype()}, {"shape", c.x[2].shape()}}});
  return {parts.output(0), Output(), parts.output(1)};
}

struct ListSetGrad final : Kernel {
  explicit ListSetGrad(const KernelSpec& s) : element(s, 1) {}
  Status compute(KernelContext& c) override {
    const List& before = list_in(c.input(2));
    const List& gradients = list_in(c.input(0));
    TROUPE_TRY(std::int64_t i, list_index(c, 1, gradients.size()));
    const bool more = i == before.size();
    if (gradients.size() != before.size() + more)
      return invalid_argument(fmt::format("the gradient has {} elements, the list {}",
                                          gradients.size(), before.size()));
    TROUPE_TRY(Tensor dvalue, checked_element(gradients.get(i), element.dtype, element.shape));
    Tensor zeros;
    if (!more) {
      TROUPE_TRY(zeros, zeros_like_element(before.get(i)));
    }
    Tensor dlist = changeable_list(c, 0);
    if (more)
      list_in(dlist).pop();
    else
      list_in(dlist).set(i, std::move(zeros));
    c.set_output(0, std::move(dlist));
    c.set_output(1, std::move(dvalue));
    return ok_status();
  }
  ElementType element;
};
Status list_set_grad_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, element_shape(c));
  c.set(0, c.shape(0));
  c.set(1, std::move(shape));
  return ok_status();
}
std::vector<Output> list_set_grad_grad(GradContext& c) {
  Output value = c.dy[1].empty() ? zero_gradient(c.y[1]) : c.dy[1];
  return {c.g.add("ListSet", {c.dy[0], c.x[1], value}), Output(), Output()};
}

}  // namespace

TROUPE_OPS(list_set) {
  const std::string index = "Tindex: type {i32 i64} = i64";
  r.add({.name = "ListSet",
         .in = {"before: list", "index: Tindex", "value"},
         .out = {"list: list"},
         .types = kElements,
         .attrs = {index},
         .shape = list_set_shape,
         .grad = list_set_grad,
         .host = {"index"},
         .cheap = true,
         .doc = "The list with the element at `index` replaced by `value`; `value` is appended if "
                "`index` is the length. Any other index is an error."})
      .cpu(kernel<list_set>);
  r.add({.name = "ListSetGrad",
         .in = {"dlist: list", "index: Tindex", "before: list"},
         .out = {"dbefore: list", "dvalue"},
         .types = kElements,
         .attrs = {"T: type", "shape: shape = ?", index},
         .shape = list_set_grad_shape,
         .grad = list_set_grad_grad,
         .host = {"index"},
         .doc = "dlist with zeros in the form of the element of `before` at `index`, and what was "
                "there: the gradient of ListSet."})
      .cpu(make_kernel<ListSetGrad>);
}
