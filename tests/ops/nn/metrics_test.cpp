// ops/metrics against plain loops over all that they were given.
#include <doctest/doctest.h>

#include <cmath>

#include "core/hash.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

// A metric of pairs (prediction or score, label), fed batch by batch.
template <class P, class L>
struct Evaluation {
  Graph g;
  Output predictions = placeholder<P>(g, {-1}), labels = placeholder<L>(g, {-1});
  metrics::Metric metric;
  Interpreter run{g};

  template <class Make>
  explicit Evaluation(Make make) : metric(make(g.scope("metric"), predictions, labels)) {
    run.init();
  }
  void update(const std::vector<P>& p, const std::vector<L>& l) {
    run.run({}, {metric.update}, {{predictions.node(), tensor(p)}, {labels.node(), tensor(l)}});
  }
  Tensor value() { return run.run({metric.value})[0]; }
  double number() { return value().template item<double>(); }
  void reset() { run.run({}, {metric.reset}); }

 private:
  template <class T>
  static Tensor tensor(const std::vector<T>& values) {
    Tensor t = Tensor::make(dtype_of<T>, Shape{std::int64_t(values.size())}).value();
    std::copy(values.begin(), values.end(), t.mutable_data<T>());
    return t;
  }
};

using Scores = Evaluation<double, std::int64_t>;
Scores scores(std::int64_t bins) {
  return Scores(
      [bins](Scope s, Output p, Output l) { return metrics::auc(s, p, l, {.bins = bins}); });
}

// The share of pairs of a positive and a negative that the scores put in order.
double area(const std::vector<double>& scores, const std::vector<std::int64_t>& labels) {
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i)
    for (std::size_t j = 0; j < scores.size(); ++j)
      if (labels[i] == 1 && labels[j] == 0) {
        pairs += 1;
        won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
  return won / pairs;
}

}  // namespace

TEST_CASE("a mean is over all elements of all runs since its reset") {
  Graph g;
  Output x = placeholder<float>(g, {-1, 2});
  auto metric = metrics::mean(g.scope("loss"), x);
  Interpreter run(g);
  run.init();
  const auto value = [&] { return run.run({metric.value})[0].item<double>(); };
  CHECK(std::isnan(value()));
  run.run({}, {metric.update}, {{x.node(), Tensor::of<float>(Shape{1, 2}, {1, 2})}});
  CHECK(value() == 1.5);
  run.run({}, {metric.update}, {{x.node(), Tensor::of<float>(Shape{2, 2}, {3, 4, 5, 9})}});
  CHECK(value() == 24.0 / 6);
  run.run({}, {metric.reset});
  CHECK(std::isnan(value()));
  run.run({}, {metric.update}, {{x.node(), Tensor::of<float>(Shape{1, 2}, {7, 7})}});
  CHECK(value() == 7);
  CHECK(trainable_variables(g).empty());
}

TEST_CASE("a value is as of before its own run's update") {
  Graph g;
  auto metric = metrics::mean(g.scope("m"), constant(g, 3.0));
  Interpreter run(g);
  run.init();
  CHECK(std::isnan(run.run({metric.value}, {metric.update})[0].item<double>()));
  CHECK(run.run({metric.value}, {metric.update})[0].item<double>() == 3);
}

TEST_CASE("accuracy is the share of predictions that are right") {
  Evaluation<std::int64_t, std::int64_t> e(
      [](Scope s, Output p, Output l) { return metrics::accuracy(s, p, l); });
  e.update({1, 2, 3}, {1, 2, 0});
  e.update({5}, {4});
  CHECK(e.number() == 0.5);
  e.reset();
  e.update({5}, {5});
  CHECK(e.number() == 1);
  Output three = placeholder<std::int64_t>(e.g, {3}), four = placeholder<std::int64_t>(e.g, {4});
  CHECK_THROWS_AS(metrics::accuracy(e.g.scope("no"), three, four), Error);
}

TEST_CASE("a confusion matrix counts label by prediction") {
  Evaluation<std::int32_t, std::int32_t> e(
      [](Scope s, Output p, Output l) { return metrics::confusion(s, p, l, 3); });
  e.update({0, 2, 2}, {0, 1, 2});
  e.update({2, 2}, {1, 2});
  CHECK(
      Tensor::same(e.value(), Tensor::of<std::int64_t>(Shape{3, 3}, {1, 0, 0, 0, 0, 2, 0, 0, 2})));
  e.reset();
  CHECK(Tensor::same(e.value(), Tensor::zeros(DType::i64, Shape{3, 3}).value()));
}

TEST_CASE("the area under the curve is that of all pairs, ties counted half") {
  const std::uint64_t seed = 11;
  INFO("seed " << seed);
  Random random(seed);
  Scores e = scores(16);
  std::vector<double> all;
  std::vector<std::int64_t> labels;
  for (int batch = 0; batch < 5; ++batch) {
    std::vector<double> p;
    std::vector<std::int64_t> l;
    for (int i = 0; i < 40; ++i) {
      p.push_back(std::floor(random.uniform() * 16) / 16);
      l.push_back(random.uniform() < p.back() ? 1 : 0);
    }
    e.update(p, l);
    all.insert(all.end(), p.begin(), p.end());
    labels.insert(labels.end(), l.begin(), l.end());
  }
  const double want = area(all, labels);
  CHECK(want > 0.6);
  CHECK(e.number() == doctest::Approx(want).epsilon(1e-12));
}

TEST_CASE("scores at the ends of [0, 1] have their part, and none of one kind makes NaN") {
  Scores e = scores(2);
  CHECK(std::isnan(e.number()));
  e.update({1, 0.5}, {1, 1});
  CHECK(std::isnan(e.number()));
  e.update({0, 0.49}, {0, 0});
  CHECK(e.number() == 1);
  e.update({1}, {0});  // ties with both positives
  CHECK(e.number() == doctest::Approx((2 * 2 + 2 * 0.5) / 6));
  e.reset();
  CHECK(std::isnan(e.number()));
  CHECK_THROWS_AS(scores(0), Error);
}
