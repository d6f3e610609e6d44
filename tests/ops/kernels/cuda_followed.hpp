// A convolution or a product with a bias and, as it may be, Relu, on the emulated GPU.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/function_ref.hpp"
#include "ops/evaluate.hpp"
#include "ops/op.hpp"
#include "tests/contains.hpp"
#include "tests/ops/kernels/cuda_kernels.hpp"
#include "tests/ops/kernels/sums_in_any_order.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {

inline Expected<std::vector<Tensor>> run_on_cpu(const NodeDef& node, std::vector<Tensor> inputs) {
  return evaluate(ops::builtin(), node, std::move(inputs), inline_device());
}

// The op with all that follows on it, and the three ops that it is made of.
struct Followed {
  std::vector<Tensor> inputs;  // the two of `op`, bias
  AttrMap attrs;
  bool relu = false;
  std::int64_t terms = 0;  // of each sum
  std::string op;          // "Conv2D" or "MatMul"

  NodeDef fused() const {
    AttrMap all = attrs;
    all["relu"] = relu;
    return make_node("_" + op + "Bias", inputs, all);
  }
  Expected<std::vector<Tensor>> one_by_one(
      FunctionRef<Expected<std::vector<Tensor>>(const NodeDef&, std::vector<Tensor>)> run) const {
    const std::vector<Tensor> of_op{inputs[0], inputs[1]};
    TROUPE_TRY(auto y, run(make_node(op, of_op, attrs), of_op));
    const std::vector<Tensor> of_add{y[0], inputs[2]};
    TROUPE_TRY(y, run(make_node("BiasAdd", of_add, {}), of_add));
    if (!relu) return y;
    const std::vector<Tensor> of_relu{y[0]};
    return run(make_node("Relu", of_relu, {}), of_relu);
  }
};

// Against the fused op of a CPU.
inline void check(CudaDevice& device, const Followed& one, std::size_t offset = 0) {
  const auto got = run_on_gpu(ops::builtin(), device, one.fused(), one.inputs, false, {}, offset);
  const auto want = run_on_cpu(one.fused(), one.inputs);
  Followed sizes = one;
  for (Tensor& x : sizes.inputs) x = sizes_of(x);
  const auto of_sizes = run_on_cpu(sizes.fused(), sizes.inputs);
  REQUIRE_MESSAGE(got.ok(), got.status().text());
  REQUIRE_MESSAGE(want.ok(), want.status().text());
  REQUIRE_MESSAGE(of_sizes.ok(), of_sizes.status().text());
  check_within((*got)[0], (*want)[0], (*of_sizes)[0], one.terms);
}

// It fails on the GPU.
inline void check_failure(CudaDevice& device, const Followed& one, const std::string& says) {
  const auto failed = run_on_gpu(ops::builtin(), device, one.fused(), one.inputs);
  REQUIRE_FALSE(failed.ok());
  CHECK(contains(failed.status().text(), says));
}

// With a bias that does not fit it is refused, on either device.
inline void check_misfit(CudaDevice& device, Followed one, Tensor bias, const std::string& says) {
  one.inputs[2] = std::move(bias);
  for (const Status& status : {run_on_gpu(ops::builtin(), device, one.fused(), one.inputs).status(),
                               run_on_cpu(one.fused(), one.inputs).status()}) {
    CHECK(status.code() == Code::invalid_argument);
    CHECK(contains(status.message(), says));
  }
}

}  // namespace troupe::test
