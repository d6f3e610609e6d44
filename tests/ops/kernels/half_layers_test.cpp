// Layers of f16 and bf16, and their gradients: computed in f32, rounded once.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <span>

#include "graph/gradients.hpp"
#include "ops/api.hpp"
#include "ops/graph_api.hpp"
#include "tests/ops/api_interpreter.hpp"
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

namespace {

// The loss of a small network of elements of type T, and its gradients for filter, bias and
// weights.
template <class T>
std::vector<Tensor> loss_and_gradients(const std::vector<Tensor>& values, const Tensor& labels) {
  Graph g;
  std::vector<Output> in;
  std::map<NodeId, Tensor> feeds;
  for (const Tensor& value : values) {
    in.push_back(placeholder<T>(g, PartialShape(value.shape())));
    feeds.emplace(in.back().port().node, converted(value, dtype_of<T>));
  }
  const Output pooled = max_pool(relu(conv2d(in[0], in[1]) + in[2]), 2);
  const Output loss = mean(
      softmax_cross_entropy(mat_mul(flatten(avg_pool(pooled, 2)), in[3]), constant(g, labels)));
  const Output ys[] = {loss};
  const auto found = gradients(ys, std::span(in).subspan(1));
  REQUIRE_MESSAGE(found.ok(), found.status().text());
  std::vector<Output> fetches{loss};
  fetches.insert(fetches.end(), found->begin(), found->end());
  return converted(Interpreter(g).run(fetches, {}, std::move(feeds)), DType::f64);
}

}  // namespace

TEST_CASE_TEMPLATE("a network of 16-bit floats has the loss and the gradients of one of f64", T,
                   half, bfloat16) {
  Random random(29);
  std::vector<Tensor> values;
  for (const Shape& shape : {Shape{4, 8, 8, 3}, Shape{3, 3, 3, 6}, Shape{6}, Shape{24, 5}})
    values.push_back(converted(numbers(random, dtype_of<T>, shape), DType::f64));
  const Tensor labels = Tensor::of<std::int64_t>(Shape{4}, {0, 4, 2, 2});
  const auto got = loss_and_gradients<T>(values, labels),
             want = loss_and_gradients<double>(values, labels);
  REQUIRE(got.size() == 4);
  // A few roundings to 11 and 8 bits.
  const double most = std::is_same_v<T, half> ? 0.003 : 0.02;
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    double apart = 0, length = 0;
    for (std::int64_t k = 0; k < got[i].elements(); ++k) {
      apart += std::pow(at(got[i], k) - at(want[i], k), 2);
      length += std::pow(at(want[i], k), 2);
    }
    CHECK(length > 0);
    CHECK(std::sqrt(apart / length) < most);
  }
}

namespace {

struct Root : nn::Module {
  using Module::Module;
};

// What comes out of a batch norm in training, d sum(weights y) / dx, and the averages thereafter.
std::vector<Tensor> batch_normed(DType type, const Tensor& x, const Tensor& weights) {
  Graph g;
  Root root{g.scope("net")};
  nn::BatchNorm norm{root, "norm", 3, {.momentum = 0.5, .dtype = type}};
  auto training = norm.train();
  const Output in = constant(g, converted(x, type));
  const Output y = norm(in);
  CHECK(y.dtype() == type);
  const Output loss[] = {sum(y * constant(g, converted(weights, type)))}, from[] = {in};
  const auto dx = gradients(loss, from);
  REQUIRE_MESSAGE(dx.ok(), dx.status().text());
  Interpreter run(g);
  run.init();
  std::vector<Tensor> all = run.run({y, dx->front()}, moving_averages(y));
  for (Tensor& average : run.run({norm.mean().value(), norm.variance().value()}))
    all.push_back(std::move(average));
  return all;
}

}  // namespace

TEST_CASE_TEMPLATE("a batch norm of 16-bit floats is computed in f32, and so are its averages", T,
                   half, bfloat16) {
  Random random(31);
  const DType type = dtype_of<T>;
  const Tensor x = numbers(random, type, Shape{7, 3}), weights = numbers(random, type, Shape{7, 3});
  const auto got = batch_normed(type, x, weights), want = batch_normed(DType::f32, x, weights);
  for (std::size_t i : {0, 1}) CHECK(Tensor::same(got[i], converted(want[i], type)));
  for (std::size_t i : {2, 3}) CHECK(Tensor::same(got[i], want[i]));
}

}  // namespace troupe::test
