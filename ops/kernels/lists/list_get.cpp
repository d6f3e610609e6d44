// ListGet and its gradient: one element, and where it came from.
#include "ops/kernels/lists/elements.hpp"

using namespace troupe;

namespace {

Status list_get_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(1, 0));
  TROUPE_TRY(PartialShape shape, element_shape(c));
  c.set(0, std::move(shape));
  return ok_status();
}
struct ListGet final : Kernel {
  explicit ListGet(const KernelSpec& s) : element(s, 0) {}
  Status compute(KernelContext& c) override {
    const List& list = list_in(c.input(0));
    TROUPE_TRY(std::int64_t i, list_index(c, 1, list.size()));
    TROUPE_TRY(Tensor value, checked_element(list.get(i), element.dtype, element.shape));
    c.set_output(0, std::move(value));
    return ok_status();
  }
  ElementType element;
};
std::vector<Output> list_get_grad(GradContext& c) {
  return {c.g.add("ListGetGrad", {c.dy[0], c.x[1], c.x[0]}), Output()};
}

// sums[index] += dy, where sums is a list like the one that was read.
Status add_at(KernelContext& c, Tensor sums, const Tensor& dy, int index) {
  List& list = list_in(sums);
  TROUPE_TRY(std::int64_t i, list_index(c, index, list.size()));
  TROUPE_TRY(add_to_element(list, i, dy));
  c.set_output(0, std::move(sums));
  return ok_status();
}
Status list_get_grad_kernel(KernelContext& c) {
  TROUPE_TRY(Tensor zeros, zeros_like_element(c.input(2)));
  return add_at(c, std::move(zeros), c.input(0), 1);
}
Status list_get_add(KernelContext& c) { return add_at(c, changeable_list(c, 0), c.input(1), 2); }

Status list_get_grad_shape(InferenceContext& c) {
  c.set(0, c.shape(2));
  return ok_status();
}
Output get(GradContext& c, Output list, Output index, Output like) {
  return c.g
      .add({.op = "ListGet",
            .inputs = {list, index},
            .attrs = {{"T", like.dtype()}, {"shape", like.shape()}}})
      .output();
}
std::vector<Output> list_get_grad_grad(GradContext& c) {
  return {get(c, c.dy[0], c.x[1], c.x[0]), Output(), Output()};
}
std::vector<Output> list_get_add_grad(GradContext& c) {
  return {c.dy[0], get(c, c.dy[0], c.x[2], c.x[1]), Output(), Output()};
}

}  // namespace

TROUPE_OPS(list_get) {
  const std::string index = "Tindex: type {i32 i64} = i64";
  r.add({.name = "ListGet",
         .in = {"list: list", "index: Tindex"},
         .out = {"value"},
         .types = kElements,
         .attrs = {"T: type", "shape: shape = ?", index},
         .shape = list_get_shape,
         .grad = list_get_grad,
         .host = {"index"},
         .cheap = true,
         .doc = "The element at `index`, of type T and with a shape that `shape` accepts. An index "
                "out of range is an error."})
      .cpu(make_kernel<ListGet>);
  r.add({.name = "ListGetGrad",
         .in = {"dy", "index: Tindex", "like: list"},
         .out = {"dlist: list"},
         .types = kElements,
         .attrs = {index},
         .shape = list_get_grad_shape,
         .grad = list_get_grad_grad,
         .host = {"index"},
         .added = "ListGetAdd",
         .doc = "Zeros like the elements of `like`, except dy at `index`: the gradient of "
                "ListGet."})
      .cpu(kernel<list_get_grad_kernel>);
  r.add({.name = "ListGetAdd",
         .in = {"sums: list", "dy", "index: Tindex", "like: list"},
         .out = {"dlist: list"},
         .types = kElements,
         .attrs = {index},
         .shape = same_shape,
         .grad = list_get_add_grad,
         .host = {"index"},
         .doc = "sums with dy added to its element at `index`: sums + ListGetGrad(...)."})
      .cpu(kernel<list_get_add>);
}
