// What all elementwise kernels share: none of it depends on the op, little on the element type.
#include "ops/kernels/support/elementwise.hpp"

#include <algorithm>

#include "ops/complex/element_loops.hpp"
#include "ops/kernels/support/broadcast.hpp"
#include "ops/kernels/support/half_rows.hpp"

namespace troupe {
namespace {

class ElementwiseKernel final : public Kernel {
 public:
  explicit ElementwiseKernel(const ElementOp& op) : op_(op) {}

  Status compute(KernelContext& ctx) override {
    switch (op_.inputs()) {
      case 1:
        return one(ctx);
      case 2:
        return broadcasting<2>(ctx, {&ctx.input(0).shape(), &ctx.input(1).shape()});
      default:
        return broadcasting<3>(
            ctx, {&ctx.input(0).shape(), &ctx.input(1).shape(), &ctx.input(2).shape()});
    }
  }

 private:
  // Where elements of the inputs and of the output are.
  struct Memory {
    const char* in[3] = {};
    char* out = nullptr;
    std::int64_t in_size = 0, out_size = 0;
  };
  Memory memory(const KernelContext& ctx, Tensor& y) const {
    Memory m;
    for (int i = 0; i < op_.inputs(); ++i) m.in[i] = static_cast<const char*>(ctx.input(i).raw());
    m.out = static_cast<char*>(y.mutable_raw());
    m.in_size = std::int64_t(dtype_size(op_.types().in));
    m.out_size = std::int64_t(dtype_size(op_.types().out));
    return m;
  }

  Status one(KernelContext& ctx) const {
    TROUPE_TRY(Tensor y, elementwise_result(ctx, op_.types().out, ctx.input(0).shape()));
    const Memory m = memory(ctx, y);
    for_chunks(ctx, y.elements(), [&](Range r) {
      op_({.in = {m.in[0] + r.begin * m.in_size},
           .steps = {1},
           .out = m.out + r.begin * m.out_size,
           .n = r.size()});
    });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

  template <int N>
  Status broadcasting(KernelContext& ctx, const std::array<const Shape*, N>& shapes) const {
    TROUPE_TRY(auto meet, Broadcast<N>::of(shapes));
    TROUPE_TRY(Tensor y, elementwise_result(ctx, op_.types().out, meet.out()));
    const Memory m = memory(ctx, y);
    for_chunks(ctx, y.elements(), [&](Range r) {
      ElementRow row;
      meet.rows(r, [&](std::int64_t o, const auto& at, std::int64_t n, const auto& steps) {
        row.out = m.out + o * m.out_size;
        row.n = n;
        for (int i = 0; i < N; ++i) {
          row.in[i] = m.in[i] + at[i] * m.in_size;
          row.steps[i] = steps[i];
        }
        op_(row);
      });
    });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

  ElementOp op_;
};

}  // namespace

Expected<Tensor> elementwise_result(const KernelContext& ctx, DType dtype, const Shape& shape) {
  for (int i = 0; i < ctx.inputs(); ++i)
    if (dtype_size(ctx.input(i).dtype()) == dtype_size(dtype) &&
        ctx.input(i).elements() == shape.elements() && ctx.may_reuse(i))
      return ctx.reuse_or_allocate(i, dtype, shape);
  return ctx.allocate(dtype, shape);
}

// Through blocks of float, which stay in the nearest cache.
void ElementOp::convert(const ElementRow& row) const {
  constexpr std::int64_t kBlock = 1024;
  const bool wide = is_half(types_.in), back = is_half(types_.out);
  if (types_.loop == nullptr && wide != back) {
    if (wide)
      widen_row(types_.in, row.in[0], row.n, static_cast<float*>(row.out));
    else
      narrow_row(static_cast<const float*>(row.in[0]), row.n, types_.out, row.out);
    return;
  }
  const auto in_size = std::int64_t(dtype_size(types_.in));
  const auto out_size = std::int64_t(dtype_size(types_.out));
  // At other places of a page: a read would wait for what is written at the same one.
  alignas(64) float in[3][kBlock + 16], out[kBlock];
  for (std::int64_t begin = 0; begin < row.n; begin += kBlock) {
    ElementRow block = row;
    block.n = std::min(kBlock, row.n - begin);
    for (int i = 0; i < inputs_; ++i) {
      const void* from = static_cast<const char*>(row.in[i]) + begin * row.steps[i] * in_size;
      block.in[i] = wide ? in[i] : from;
      if (wide) widen_row(types_.in, from, row.steps[i] ? block.n : 1, in[i]);
    }
    void* to = static_cast<char*>(row.out) + begin * out_size;
    block.out = back ? out : to;
    if (types_.loop != nullptr)
      types_.loop(function_, block);
    else
      block.out = in[0];  // from one 16-bit float to the other
    if (back) narrow_row(static_cast<const float*>(block.out), block.n, types_.out, to);
  }
}

std::unique_ptr<Kernel> elementwise_kernel(const ElementOp& op) {
  return std::unique_ptr<Kernel>(new ElementwiseKernel(op));
}

Expected<ElementOp> complex_op(std::string_view name, DType dtype) {
  TROUPE_TRY(const ComplexLoop loop, complex_loop(name, dtype));
  return ElementOp(loop.inputs, loop.types, ElementFunction{});
}
Expected<std::unique_ptr<Kernel>> complex_kernel(const KernelSpec& spec) {
  TROUPE_TRY(const ElementOp op, complex_op(spec.node.op, spec.type()));
  return elementwise_kernel(op);
}

Expected<ElementTypes> find_types(std::span<const ElementTypes> table, DType dtype) {
  for (const ElementTypes& types : table)
    if (types.in == dtype) return types;
  return unimplemented("no kernel for " + std::string(dtype_name(dtype)));
}

}  // namespace troupe
