// ListLength: how many elements a list has.
#include "ops/kernels/lists/elements.hpp"

using namespace troupe;

namespace {

Status list_length(KernelContext& c) {
  TROUPE_TRY(Tensor length, c.allocate_host(DType::i64, Shape{}));
  *length.mutable_data<std::int64_t>() = list_in(c.input(0)).size();
  c.set_output(0, std::move(length));
  return ok_status();
}

}  // namespace

TROUPE_OPS(list_length) {
  r.add({.name = "ListLength",
         .in = {"list: list"},
         .out = {"length: i64"},
         .shape = scalar_shape,
         .no_gradient = "of the length alone",
         .host = {"length"},
         .cheap = true,
         .doc = "The number of elements."})
      .cpu(kernel<list_length>);
}
