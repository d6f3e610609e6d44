// Pools of f16 and bf16, and their gradients: computed in f32, rounded once.
#include <doctest/doctest.h>

#include "tests/ops/kernels/sums_in_any_order.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

Tensor converted(const Tensor& x, DType to) {
  return x.dtype() == DType::i64 ? x : run("Cast", {x}, {{"to", to}})[0];
}

// Returns the result, which is that of f32, rounded.
Tensor check_pool(const char* op, const std::vector<Tensor>& inputs, const AttrMap& attrs) {
  INFO(op);
  const DType type = inputs.back().dtype();
  std::vector<Tensor> wide;
  for (const Tensor& x : inputs) wide.push_back(converted(x, DType::f32));
  const Tensor got = run(op, inputs, attrs)[0];
  REQUIRE(got.dtype() == type);
  CHECK(Tensor::same(got, converted(run(op, wide, attrs)[0], type)));
  return got;
}

}  // namespace

TEST_CASE("pools of 16-bit floats are computed in f32 and rounded once") {
  Random random(test_seed());
  INFO("seed " << test_seed());
  for (const DType type : {DType::f16, DType::bf16})
    for (const std::int64_t channels : {1, 3, 70})
      for (const std::int64_t size : {2, 3}) {
        INFO(dtype_name(type) << ", " << channels << " channels, windows of " << size);
        const AttrMap attrs{{"ksize", std::vector<std::int64_t>{size, size}},
                            {"strides", std::vector<std::int64_t>{2, 1}},
                            {"padding", "SAME"}};
        const Shape shape{3, 7, 6, channels};
        const Tensor x = numbers(random, type, shape);
        const Tensor most = check_pool("MaxPool", {x}, attrs);
        const Tensor dy = numbers(random, type, most.shape());
        check_pool("MaxPoolGrad", {x, most, dy}, attrs);
        check_pool("MaxPoolPick", {x, most, numbers(random, type, shape)}, attrs);
        check_pool("AvgPool", {x}, attrs);
        check_pool("AvgPoolGrad", {Tensor::of<std::int64_t>(Shape{4}, shape.dims()), dy}, attrs);
      }
}

}  // namespace troupe::test
