// Gradients of lists: zeros in their form, and sums.
#include "ops/kernels/lists/elements.hpp"

using namespace troupe;

namespace {

Status list_zeros_like(KernelContext& c) {
  TROUPE_TRY(Tensor zeros, zeros_like_element(c.input(0)));
  c.set_output(0, std::move(zeros));
  return ok_status();
}

Status list_add_n_shape(InferenceContext& c) {
  PartialShape shape = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) {
    TROUPE_TRY(shape, PartialShape::merge(shape, c.shape(i)));
  }
  c.set(0, std::move(shape));
  return ok_status();
}
Status list_add_n(KernelContext& c) {
  if (c.inputs() > 2 && holds_halves(c.input(0))) {
    std::vector<Tensor> lists;
    for (int i = 0; i < c.inputs(); ++i) lists.push_back(c.input(i));
    TROUPE_TRY(Tensor sum, add_all(std::move(lists)));
    c.set_output(0, std::move(sum));
    return ok_status();
  }
  Tensor sum = changeable_list(c, 0);
  for (int i = 1; i < c.inputs(); ++i) TROUPE_TRY(add_to_list(list_in(sum), list_in(c.input(i))));
  c.set_output(0, std::move(sum));
  return ok_status();
}
std::vector<Output> list_add_n_grad(GradContext& c) {
  return std::vector<Output>(c.x.size(), c.dy[0]);
}

}  // namespace

TROUPE_OPS(list_sums) {
  r.add({.name = "ListZerosLike",
         .in = {"list: list"},
         .out = {"zeros: list"},
         .shape = same_shape,
         .no_gradient = "the same for any elements of that form",
         .doc = "A list of zeros like the elements. The zeros take no memory."})
      .cpu(kernel<list_zeros_like>);
  r.add({.name = "ListAddN",
         .in = {"values: T..."},
         .out = {"sum: list"},
         .types = "list",
         .shape = list_add_n_shape,
         .grad = list_add_n_grad,
         .doc = "The elementwise sums of one or more lists of equal length, added from left to "
                "right; f16 and bf16 are summed in f32 and rounded once."})
      .cpu(kernel<list_add_n>);
}
