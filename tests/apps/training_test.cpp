// What is done between a loss and its updates, in a session: over replicas, and over runs.
#include <doctest/doctest.h>

#include <cmath>

#include "apps/troupe.hpp"

using namespace troupe;

namespace {

// A linear model on pictures, trained for a few steps; its weights. `change` stands between
// gradients and apply.
template <class Change>
Tensor weights(int replicas, std::int64_t batch, int steps, Change change) {
  Graph g;
  auto [x, y] = data::digits(64).batch(batch).repeat().outputs(g);
  Variable w = variable(g, "w", Tensor::zeros(DType::f32, Shape{784, 10}).value());
  Output loss = mean(softmax_cross_entropy(mat_mul(flatten(x), w), y));
  Op train = optim::Sgd{.lr = 0.5}.apply(change(optim::gradients(loss)));
  Cluster cluster;
  cluster.replicas = replicas;
  Session s(g, cluster);
  s.init();
  auto step = s.compile({}, {train});
  for (int i = 0; i < steps; ++i) step.run(std::vector<Tensor>{});
  return s.run({w.value()})[0];
}

double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  double most = 0;
  for (std::size_t i = 0; i < std::size_t(a.elements()); ++i)
    most = std::max(most, std::abs(double(a.span<float>()[i]) - double(b.span<float>()[i])));
  return most;
}

}  // namespace

TEST_CASE("two replicas with a clipped gradient make the steps of one batch") {
  const auto clip = [](double limit) {
    return [=](optim::Gradients g) { return optim::clip_by_global_norm(std::move(g), limit); };
  };
  const Tensor one = weights(1, 32, 4, clip(0.05)), two = weights(2, 16, 4, clip(0.05));
  CHECK(distance(one, two) < 1e-6);
  CHECK(distance(one, weights(1, 32, 4, clip(1e6))) > 1e-3);
}

TEST_CASE("runs that accumulate make the steps of one batch, on one replica or two") {
  const auto accumulate = [](std::int64_t runs) {
    return [=](optim::Gradients g) {
      return optim::clip_by_norm(optim::accumulate(std::move(g), runs), 0.05);
    };
  };
  const Tensor one = weights(1, 32, 2, accumulate(1)), four = weights(1, 8, 8, accumulate(4)),
               both = weights(2, 8, 4, accumulate(2));
  CHECK(distance(one, four) < 1e-6);
  CHECK(distance(one, both) < 1e-6);
  CHECK(distance(four, weights(1, 8, 7, accumulate(4))) > 1e-3);
}

TEST_CASE("a schedule counts the updates of a session, once for all replicas") {
  const auto trained = [](int replicas) {
    Graph g;
    auto [x, y] = data::digits(64).batch(8).repeat().outputs(g);
    Variable v = variable(g, "v", Tensor::scalar(0.0f));
    Output loss = mean(x * 0.0f) - v;
    Op train =
        optim::Sgd{.lr = optim::step_decay({.rate = 1, .every = 2, .factor = 0.5})}.minimize(loss);
    Cluster cluster;
    cluster.replicas = replicas;
    Session s(g, cluster);
    s.init();
    auto step = s.compile({}, {train});
    for (int i = 0; i < 5; ++i) step.run(std::vector<Tensor>{});
    return s.run({v.value()})[0].item<float>();
  };
  CHECK(trained(1) == 1 + 1 + 0.5f + 0.5f + 0.25f);
  CHECK(trained(2) == 1 + 1 + 0.5f + 0.5f + 0.25f);
}

TEST_CASE("every replica adds its part to a measure") {
  const auto seen = [](int replicas) {
    Graph g;
    auto [x, y] = data::digits(64).batch(8).repeat().outputs(g);
    auto counted = metrics::confusion(g.scope("m"), y, y, 10);
    auto brightness = metrics::mean(g.scope("b"), x);
    Cluster cluster;
    cluster.replicas = replicas;
    Session s(g, cluster);
    s.init();
    auto step = s.compile({}, {counted.update, brightness.update});
    for (int i = 0; i < 4 / replicas; ++i) step.run(std::vector<Tensor>{});
    return s.run({counted.value, brightness.value});
  };
  const auto one = seen(1), two = seen(2);
  CHECK(Tensor::same(one[0], two[0]));
  std::int64_t total = 0;
  for (std::int64_t n : one[0].span<std::int64_t>()) total += n;
  CHECK(total == 32);
  CHECK(one[1].item<double>() == doctest::Approx(two[1].item<double>()).epsilon(1e-12));
}

TEST_CASE("a class or a score that there is not fails the run that counts it") {
  Graph g;
  Output label = placeholder<std::int64_t>(g, {-1}), guess = placeholder<std::int64_t>(g, {-1});
  Output score = placeholder<float>(g, {-1});
  auto counted = metrics::confusion(g.scope("m"), guess, label, 3);
  auto area = metrics::auc(g.scope("a"), score, label);
  Session s(g);
  s.init();
  const auto fails = [&](std::int64_t g_, std::int64_t l) {
    return !s.try_run({}, {counted.update},
                      {{guess, Tensor::of<std::int64_t>(Shape{1}, {g_})},
                       {label, Tensor::of<std::int64_t>(Shape{1}, {l})}})
                .ok();
  };
  CHECK_FALSE(fails(2, 1));
  CHECK(fails(3, 0));  // would be label 1 as 0
  CHECK(fails(0, 3));
  CHECK(fails(-1, 1));
  CHECK(fails(1, -1));
  for (float wrong : {-0.1f, 1.1f, NAN})
    CHECK_FALSE(s.try_run({}, {area.update},
                          {{score, Tensor::of<float>(Shape{1}, {wrong})},
                           {label, Tensor::of<std::int64_t>(Shape{1}, {1})}})
                    .ok());
}
