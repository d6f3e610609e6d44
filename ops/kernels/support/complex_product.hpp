// Products of complex matrices by kernels of products of real ones (ops/complex/product.hpp).
#pragma once

#include "ops/complex/product.hpp"
#include "ops/op.hpp"

namespace troupe {

// Real: a kernel of MatMul or BatchMatMul, made from (transpose_a, transpose_b), with
//   static Status check(a, transpose_a, b, transpose_b)   Expected<Tensor> product(ctx, a, b)
template <class Real>
class ComplexProduct final : public Kernel {
 public:
  explicit ComplexProduct(const KernelSpec& spec)
      : transpose_a_(spec.bool_attr("transpose_a")), transpose_b_(spec.bool_attr("transpose_b")) {}

  Status compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    TROUPE_TRY(Real::check(a, transpose_a_, b, transpose_b_));
    TROUPE_TRY(const Tensor left, complex_left(ctx, a, transpose_a_));
    TROUPE_TRY(const Tensor right, complex_right(ctx, b, transpose_b_));
    TROUPE_TRY(const Tensor product, real_.product(ctx, left, right));
    ctx.set_output(0, complex_product(product));
    return ok_status();
  }

 private:
  const bool transpose_a_, transpose_b_;
  Real real_{false, false};
};

}  // namespace troupe
