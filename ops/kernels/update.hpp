// What the update rules share: the shape function of a write and the loop over a variable.
//
// A write op's first inputs are handles, then operands. Its CPU kernel is the rule: at commit it is
// called with the current values of the handles followed by the operands, and its outputs are the
// new values in the order of the handles, written over the old ones where nobody else holds them.
// The shape function of a write checks everything that could make the rule fail, so it can be asked
// again, with the shapes that the variables have by then, when a write is logged.
#pragma once

#include "devices/chunks.hpp"
#include "ops/op.hpp"

namespace troupe {

template <class F>
void update_loop(const KernelContext& c, std::int64_t elements, F f) {
  const Chunks chunks = elementwise_chunks(elements);
  c.parallel(chunks.count, [&](std::int64_t i) {
    const Range r = chunks[i];
    f(r.begin, r.end);
  });
}

// The shape function of a dense write. Handles carry the shapes of their variables; all of them and
// the operands "grad" and "value" have one shape; "step" and every other operand are scalars.
inline Status dense_update_shape(InferenceContext& c) {
  PartialShape shape;
  for (int i = 0; i < c.inputs(); ++i) {
    const ArgSpec& arg = c.op().in[std::size_t(i)];
    bool handle = arg.dtype == DType::resource && arg.name != "step";
    if (!handle && arg.name != "grad" && arg.name != "value") {
      TROUPE_TRY(c.want_rank(i, 0));
      continue;
    }
    auto merged = PartialShape::merge(shape, c.shape(i));
    if (!merged.ok())
      return invalid_argument(arg.name + " has shape " + c.shape(i).text() +
                              ", but the variable has " + shape.text());
    shape = std::move(merged).value();
  }
  return ok_status();
}

// The value of scalar operand `i`.
template <class T>
T scalar_operand(const KernelContext& c, int i) {
  return *c.input(i).data<T>();
}

// Memory for the new value of handle `i`: the old one's when it may be overwritten.
template <class T>
Expected<Tensor> new_value(const KernelContext& c, int i) {
  return c.reuse_or_allocate(i, dtype_of<T>, c.input(i).shape());
}

}  // namespace troupe
