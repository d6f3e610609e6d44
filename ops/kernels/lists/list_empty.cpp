// ListEmpty: the list that others begin with.
#include "ops/kernels/lists/elements.hpp"

using namespace troupe;

namespace {

Status list_empty_shape(InferenceContext& c) {
  c.set(0, c.shape_attr("shape"));
  return ok_status();
}
Status list_empty(KernelContext& c) {
  c.set_output(0, list_tensor({}));
  return ok_status();
}

}  // namespace

TROUPE_OPS(list_empty) {
  r.add({.name = "ListEmpty",
         .out = {"empty: list"},
         .types = kElements,
         .attrs = {"T: type", "shape: shape = ?"},
         .shape = list_empty_shape,
         .no_gradient = "no inputs",
         .cheap = true,
         .doc = "An empty list, for elements of type T with shapes that `shape` accepts."})
      .cpu(kernel<list_empty>);
}
