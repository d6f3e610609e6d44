// Derivatives of derivatives through whole models: products of the Hessian with a vector against
// finite differences of the gradient, and a loss that holds a gradient.
#include <doctest/doctest.h>

#include <cmath>

#include "graph/gradients.hpp"
#include "tests/ops/api_interpreter.hpp"
#include "tests/ops/kernels/conformance.hpp"

using namespace troupe;
using troupe::test::any;
using troupe::test::i64;
using troupe::test::Interpreter;

namespace {

std::vector<Output> gradients_of(Output y, const std::vector<Output>& xs) {
  return value_or_throw(gradients(std::vector{y}, xs));
}

// A point and a direction in the space of some parameters, which are fed.
struct Parameters {
  Graph g;
  std::vector<Output> xs;
  std::vector<Tensor> at, along;

  Output add(Tensor value) {
    Output x = placeholder<double>(g, value.shape());
    xs.push_back(x);
    along.push_back(any(value.shape(), -0.7, 1.3));
    at.push_back(std::move(value));
    return x;
  }

  // H v, where v is the direction, is the gradient of (gradient . v): against the slope of the
  // gradient along v.
  void check_hessian(Output loss) {
    const auto first = gradients_of(loss, xs);
    std::vector<Output> dots;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      REQUIRE(!first[i].empty());
      dots.push_back(sum(first[i] * constant(g, along[i])));
    }
    const auto products = gradients_of(add_n(dots), xs);
    constexpr double kStep = 1e-5;
    const auto got = run(products, 0), up = run(first, kStep), down = run(first, -kStep);
    double size = 0;
    for (std::size_t i = 0; i < xs.size(); ++i)
      for (std::int64_t k = 0; k < got[i].elements(); ++k) {
        INFO("parameter " << i << ", element " << k);
        const double want = (up[i].data<double>()[k] - down[i].data<double>()[k]) / (2 * kStep);
        CHECK(got[i].data<double>()[k] == doctest::Approx(want).epsilon(1e-6).scale(1));
        size += std::abs(want);
      }
    CHECK(size > 0.1);  // or nothing was seen
  }

 private:
  // The values where the parameters are moved by h v.
  std::vector<Tensor> run(const std::vector<Output>& fetches, double h) {
    std::map<NodeId, Tensor> feeds;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      Tensor moved = at[i].clone().value();
      for (std::int64_t k = 0; k < moved.elements(); ++k)
        moved.mutable_data<double>()[k] += h * along[i].data<double>()[k];
      feeds[xs[i].node()] = moved;
    }
    return Interpreter(g).run(fetches, {}, feeds);
  }
};

}  // namespace

TEST_CASE("Hessian-vector products through a softmax cross entropy") {
  for (bool dense : {false, true}) {
    CAPTURE(dense);
    Parameters p;
    Output x = p.add(any({5, 3}, -2, 2)), w = p.add(any({3, 4})), b = p.add(any({4}));
    Output labels = constant(p.g, dense ? any({5, 4}, 0.1, 1) : i64({5}, {0, 3, 1, 1, 2}));
    p.check_hessian(mean(softmax_cross_entropy(mat_mul(tanh(x), w) + b, labels)));
  }
}

TEST_CASE("Hessian-vector products through a batch norm") {
  for (bool training : {true, false}) {
    CAPTURE(training);
    Parameters p;
    Output x = p.add(any({6, 3}, -2, 2)), w = p.add(any({3, 4}));
    Output scale = p.add(any({4}, 0.5, 2)), offset = p.add(any({4}));
    Output mean_in = constant(p.g, any({4})), variance = constant(p.g, any({4}, 0.5, 2));
    auto normed = fused_batch_norm(mat_mul(x, w), scale, offset, mean_in, variance,
                                   {.is_training = training});
    // The statistics of the batch count, too.
    Output loss = sum(sigmoid(normed.y) * constant(p.g, any({6, 4}, 0.5, 1.5)));
    if (training) loss = loss + sum(square(normed.batch_variance)) + sum(normed.inv_std);
    p.check_hessian(loss);
  }
}

TEST_CASE("Hessian-vector products through a convolution and a max pool") {
  Parameters p;
  Output x = p.add(any({2, 6, 6, 2}, -1, 1)), filter = p.add(any({3, 3, 2, 3}));
  Output w = p.add(any({27, 4}));
  Output pooled = max_pool(tanh(conv2d(x, filter)), 2);
  Output labels = constant(p.g, i64({2}, {3, 1}));
  p.check_hessian(mean(softmax_cross_entropy(mat_mul(flatten(pooled), w), labels)));
}

TEST_CASE("third derivatives through a softmax cross entropy") {
  Parameters p;
  Output x = p.add(any({2, 3}, -2, 2));
  Output loss = mean(softmax_cross_entropy(x, constant(p.g, i64({2}, {0, 2}))));
  Output slope = gradients_of(loss, {x})[0];
  p.check_hessian(sum(square(slope)));
}

TEST_CASE("a loss with a penalty on its gradient trains") {
  // Two classes in the plane, on either side of a line. Without a bound the border between them
  // grows ever steeper; the penalty on the slope of the margin keeps it flat.
  auto train = [](double weight) {
    Graph g(3);
    const Tensor at = any({16, 2}, -1, 1);
    std::vector<std::int64_t> sides;
    for (int i = 0; i < 16; ++i)
      sides.push_back(at.data<double>()[2 * i] > at.data<double>()[2 * i + 1]);
    Output points = constant(g, at),
           labels = constant(g, Tensor::of<std::int64_t>(Shape{16}, sides));
    Variable hidden = variable(g, "hidden", any({2, 8}, -0.5, 0.5));
    Variable out = variable(g, "out", any({8, 2}, -0.4, 0.5));
    Output logits = mat_mul(tanh(mat_mul(points, hidden)), out);
    Output margin = sum(logits * constant<double>(g, {2}, {-1, 1}));
    Output penalty = mean(square(gradients_of(margin, {points})[0]));
    Output loss = mean(softmax_cross_entropy(logits, labels)) + penalty * weight;
    Op step = optim::Momentum{.lr = 0.1}.minimize(loss);
    Output right = mean(cast<double>(argmax(logits, 1) == labels));
    Interpreter run(g);
    run.init();
    const double before = run.run({loss})[0].item<double>();
    for (int i = 0; i < 300; ++i) run.run({}, {step});
    auto after = run.run({loss, penalty, right});
    CHECK(after[0].item<double>() < before);
    CHECK(after[2].item<double>() >= 0.9);
    return after[1].item<double>();
  };
  const double free = train(0), bound = train(0.02);
  INFO("mean squared slope " << free << ", with the penalty " << bound);
  CHECK(bound < 0.5 * free);
}
