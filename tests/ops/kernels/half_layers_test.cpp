// Layers of f16 and bf16, and their gradients: computed in f32, rounded once.
#include <doctest/doctest.h>

#include "tests/ops/kernels/sums_in_any_order.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

// Returns the first result. All are those of f32, rounded.
Tensor check_rounded(DType type, const char* op, const std::vector<Tensor>& inputs,
                     const AttrMap& attrs = {}) {
  INFO(op);
  const std::vector<Tensor> got = run(op, inputs, attrs),
                            wide = run(op, converted(inputs, DType::f32), attrs),
                            want = converted(wide, type);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(Tensor::same(got[i], want[i]));
  return got[0];
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
        const Tensor most = check_rounded(type, "MaxPool", {x}, attrs);
        const Tensor dy = numbers(random, type, most.shape());
        check_rounded(type, "MaxPoolGrad", {x, most, dy}, attrs);
        check_rounded(type, "MaxPoolPick", {x, most, numbers(random, type, shape)}, attrs);
        check_rounded(type, "AvgPool", {x}, attrs);
        check_rounded(type, "AvgPoolGrad", {Tensor::of<std::int64_t>(Shape{4}, shape.dims()), dy},
                      attrs);
      }
}

TEST_CASE("softmax and the losses of 16-bit floats are computed in f32 and rounded once") {
  Random random(test_seed());
  INFO("seed " << test_seed());
  for (const DType type : {DType::f16, DType::bf16})
    for (const std::int64_t classes : {1, 10, 257}) {
      INFO(dtype_name(type) << ", " << classes << " classes");
      constexpr std::int64_t kRows = 5;
      const Shape shape{kRows, classes};
      const Tensor x = numbers(random, type, shape), dy = numbers(random, type, shape);
      for (const std::string op : {"Softmax", "LogSoftmax"}) {
        const Tensor y = check_rounded(type, op.c_str(), {x});
        check_rounded(type, (op + "Grad").c_str(), {dy, y});
      }
      const Tensor chances = run("Softmax", {dy})[0];
      check_rounded(type, "SoftmaxCrossEntropyWithLogits", {x, chances});
      std::vector<std::int64_t> labels;
      for (std::int64_t i = 0; i < kRows; ++i)
        labels.push_back(std::int64_t(random.below(classes)));
      check_rounded(type, "SparseSoftmaxCrossEntropyWithLogits",
                    {x, Tensor::of<std::int64_t>(Shape{kRows}, labels)});
      check_rounded(type, "ScaleRows", {x, numbers(random, type, Shape{kRows})});
    }
}

}  // namespace troupe::test
