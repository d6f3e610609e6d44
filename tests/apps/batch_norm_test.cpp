#include <doctest/doctest.h>

#include <cmath>

#include "apps/troupe.hpp"

using namespace troupe;

namespace {

struct Net : nn::Module {
  using Module::Module;
  nn::BatchNorm norm{*this, "norm", 2, {.epsilon = 0, .momentum = 0.75}};
};

struct Pictures : nn::Module {
  using Module::Module;
  nn::BatchNorm norm{*this, "norm", 1, {.momentum = 0}};
};

template <class Net>
Output trained_on(Net& net, Output x) {
  auto training = net.train();
  return net.norm(x);
}

}  // namespace

TEST_CASE("a batch norm trains on the batch and infers by its moving averages") {
  Graph g;
  Net net{g.scope("net")};
  // Means 3 and 20, unbiased variances 4 and 16; the biased ones divide by 3 rather than 2.
  Output x = constant<float>(g, {3, 2}, {1, 16, 3, 20, 5, 24});
  Output inferred = net.norm(x), trained = trained_on(net, x);
  Session s(g);
  s.init();

  auto before = s.run({inferred});
  CHECK(before[0].data<float>()[3] == doctest::Approx(20));  // averages begin at 0 and 1

  auto step = s.compile({trained}, moving_averages(trained));
  for (int i = 0; i < 2; ++i) {
    Tensor y = step.run(std::vector<Tensor>{})[0];
    const float far = std::sqrt(1.5f);
    for (int j : {0, 1}) {
      CHECK(y.data<float>()[j] == doctest::Approx(-far));
      CHECK(y.data<float>()[2 + j] == doctest::Approx(0));
      CHECK(y.data<float>()[4 + j] == doctest::Approx(far));
    }
  }
  auto after = s.run({net.norm.mean().value(), net.norm.variance().value(), inferred});
  const float kept = 0.75f * 0.75f, mean = 20 * (1 - kept), variance = kept + 16 * (1 - kept);
  CHECK(after[0].data<float>()[1] == doctest::Approx(mean));
  CHECK(after[1].data<float>()[1] == doctest::Approx(variance));
  CHECK(after[2].data<float>()[3] == doctest::Approx((20 - mean) / std::sqrt(variance)));
}

TEST_CASE("the replicas of a batch norm move its averages together, not each") {
  const auto moving_mean = [](int replicas) {
    Graph g;
    auto [x, y] = data::digits(256).batch(64).repeat().outputs(g);
    Pictures net{g.scope("net")};
    Output trained = trained_on(net, x);
    Cluster cluster;
    cluster.replicas = replicas;
    Session s(g, cluster);
    s.init();
    s.run({}, moving_averages(trained));
    return s.run({net.norm.mean().value()})[0].item<float>();
  };
  const float one = moving_mean(1);
  CHECK(one > 0);
  CHECK(moving_mean(2) / one == doctest::Approx(1).epsilon(0.1));  // the mean of two batches
}

TEST_CASE("an optimizer learns a batch norm's scale and offset, and its steps move the averages") {
  Graph g;
  Net net{g.scope("net")};
  Output x = constant<float>(g, {3, 2}, {1, 16, 3, 20, 5, 24});
  Output error = trained_on(net, x) - 2.0f;
  Op update = optim::Sgd{.lr = 0.1}.minimize(mean(error * error));
  CHECK(trainable_variables(g).size() == 2);
  Session s(g);
  s.init();
  auto step = s.compile({}, {update});
  for (int i = 0; i < 200; ++i) step.run(std::vector<Tensor>{});
  auto learnt =
      s.run({net.norm.scale().value(), net.norm.offset().value(), net.norm.mean().value()});
  for (int j : {0, 1}) {
    CHECK(std::abs(learnt[0].data<float>()[j]) < 0.01f);
    CHECK(learnt[1].data<float>()[j] == doctest::Approx(2).epsilon(0.01));
    CHECK(learnt[2].data<float>()[j] == doctest::Approx(j == 0 ? 3 : 20));
  }
}
