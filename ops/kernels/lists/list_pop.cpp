// ListPop: a list without its last element, and that.
#include "ops/kernels/lists/elements.hpp"

using namespace troupe;

namespace {

Status list_pop_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, element_shape(c));
  c.set(0, c.shape(0));
  c.set(1, std::move(shape));
  return ok_status();
}
struct ListPop final : Kernel {
  explicit ListPop(const KernelSpec& s) : element(s, 1) {}
  Status compute(KernelContext& c) override {
    if (list_in(c.input(0)).empty())
      return out_of_range("the list is empty: there is no last element to take off");
    Tensor list = changeable_list(c, 0);
    TROUPE_TRY(Tensor value, checked_element(list_in(list).pop(), element.dtype, element.shape));
    c.set_output(0, std::move(list));
    c.set_output(1, std::move(value));
    return ok_status();
  }
  ElementType element;
};
std::vector<Output> list_pop_grad(GradContext& c) {
  Output value = c.dy[1].empty() ? zero_gradient(c.y[1]) : c.dy[1];
  return {c.g.add("ListPush", {c.dy[0], value})};
}

}  // namespace

TROUPE_OPS(list_pop) {
  r.add({.name = "ListPop",
         .in = {"list: list"},
         .out = {"rest: list", "value"},
         .types = kElements,
         .attrs = {"T: type", "shape: shape = ?"},
         .shape = list_pop_shape,
         .grad = list_pop_grad,
         .cheap = true,
         .doc = "The list without its last element, and that element, which has type T and a shape "
                "that `shape` accepts."})
      .cpu(make_kernel<ListPop>);
}
