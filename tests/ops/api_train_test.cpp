// ops/optim against the formulas, ops/nn, and both together on a small problem.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

struct Mlp : nn::Module {
  using Module::Module;
  nn::Linear h{*this, "h", 784, 64}, out{*this, "out", 64, 10};
  Output operator()(Output x) const { return out(relu(h(x))); }
};

// Three steps of a rule on v = {1, -2} with loss sum(v * v), so grad = 2 v.
template <class Rule, class Step>
void compare(const Rule& rule, Step step) {
  Graph g;
  Variable v = variable(g, "v", Tensor::of<double>(Shape{2}, {1, -2}));
  Op train = rule.minimize(sum(v * v));
  Interpreter run(g);
  run.init();
  double want[2] = {1, -2};
  for (int t = 1; t <= 3; ++t) {
    run.run({}, {train});
    for (int i = 0; i < 2; ++i) step(want[i], 2 * want[i], i, t);
    auto got = run.variable(v).span<double>();
    for (int i = 0; i < 2; ++i)
      CHECK(got[std::size_t(i)] == doctest::Approx(want[i]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("Sgd follows its formula") {
  compare(optim::Sgd{.lr = 0.1}, [](double& v, double grad, int, int) { v -= 0.1 * grad; });
}

TEST_CASE("Momentum follows its formula, plain and after Nesterov") {
  for (bool nesterov : {false, true}) {
    double velocity[2] = {0, 0};
    compare(optim::Momentum{.lr = 0.1, .momentum = 0.5, .nesterov = nesterov},
            [&](double& v, double grad, int i, int) {
              velocity[i] = 0.5 * velocity[i] + grad;
              v -= 0.1 * (nesterov ? grad + 0.5 * velocity[i] : velocity[i]);
            });
  }
}

TEST_CASE("Adam follows its formula") {
  double m[2] = {0, 0}, s[2] = {0, 0};
  compare(optim::Adam{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-4},
          [&](double& v, double grad, int i, int t) {
            m[i] = 0.8 * m[i] + 0.2 * grad;
            s[i] = 0.9 * s[i] + 0.1 * grad * grad;
            const double rate = 0.1 * std::sqrt(1 - std::pow(0.9, t)) / (1 - std::pow(0.8, t));
            v -= rate * m[i] / (std::sqrt(s[i]) + 1e-4);
          });
}

TEST_CASE("a rule writes large variables in chunks and never a tensor that others hold") {
  Graph g;
  const std::int64_t n = 100'000;
  Variable v = variable(g, "v", Tensor::zeros(DType::f32, Shape{n}).value());
  Op train = optim::Sgd{.lr = 1.0}.minimize(sum(v * 3));
  Interpreter run(g);
  run.init();
  const Tensor before = run.variable(v);
  run.run({}, {train});
  for (float x : run.variable(v).span<float>()) REQUIRE(x == -3);
  for (float x : before.span<float>()) REQUIRE(x == 0);
}

TEST_CASE("minimize leaves alone what the loss does not depend on") {
  Graph g;
  Variable used = variable(g, "used", Tensor::scalar(1.f));
  Variable unused = variable(g, "unused", Tensor::scalar(1.f));
  Op train = optim::Sgd{}.minimize(used * used);
  CHECK(g.node(train.node()).control.size() == 1);
  CHECK_THROWS_AS(optim::Sgd{}.minimize(used * used, {unused}), Error);
}

TEST_CASE("minimize sums the gradients over every read of a variable") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  Output loss = v.value() * v.value() + read(v) * 5.0;
  Interpreter run(g);
  run.init();
  run.run({}, {optim::Sgd{.lr = 1.0}.minimize(loss)});
  CHECK(run.variable(v).item<double>() == 3 - (2 * 3 + 5));
}

TEST_CASE("minimize sees a variable that is read only beside its value") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  Interpreter run(g);
  run.init();
  run.run({}, {optim::Sgd{.lr = 1.0}.minimize(read(v) * 5.0)});
  CHECK(run.variable(v).item<double>() == 3 - 5);
}

TEST_CASE("a variable that two handles share is updated once, with its whole gradient") {
  Graph g;
  Variable a = variable(g, "a", Tensor::scalar(3.0), {.shared_name = "w"});
  Variable b = variable(g, "b", Tensor::scalar(3.0), {.shared_name = "w"});
  CHECK(trainable_variables(g).size() == 1);
  Output loss = a.value() * a.value() + b.value() * 5.0;
  // 0.5 * 11 at first; an update for each handle would be 0.5 * 6 + 0.5 * 5 as well, or twice 11.
  Op all = optim::Momentum{.lr = 0.5}.minimize(loss);
  Op both = optim::Momentum{.lr = 0.5}.minimize(loss, {a, b});
  for (Op train : {all, both}) {
    CHECK(g.node(train.node()).control.size() == 1);
    Interpreter run(g);
    run.init();
    run.run({}, {train});
    CHECK(run.variable(b).item<double>() == 3 - 0.5 * 11);
  }
}

TEST_CASE("a parameter that two modules share is updated once") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  Op train = optim::Sgd{.lr = 1.0}.minimize(v.value() * 5.0, {v, v});
  CHECK(g.node(train.node()).control.size() == 1);
  Interpreter run(g);
  run.init();
  run.run({}, {train});
  CHECK(run.variable(v).item<double>() == 3 - 5);
}

TEST_CASE("minimize refuses a loss of a read behind a write, unless it is held constant") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  Output after = read(v, {assign(v, v.value() * 2.0)});
  std::string message;
  try {
    optim::Sgd{.lr = 1.0}.minimize(v.value() * after);
  } catch (const Error& e) {
    message = e.status().message();
  }
  CHECK(message.find("behind the write 'Assign'") != std::string::npos);
  Op train = optim::Sgd{.lr = 1.0}.minimize(v.value() * stop_gradient(after));
  CHECK(g.node(train.node()).control.size() == 1);
}

TEST_CASE("a module's variables are named by its place and listed in order of creation") {
  Graph g;
  Mlp net{g.scope("mlp")};
  auto all = net.parameters();
  REQUIRE(all.size() == 4);
  CHECK(all[0].name() == "mlp/h/W");
  CHECK(all[1].name() == "mlp/h/b");
  CHECK(all[2].name() == "mlp/out/W");
  CHECK(all[3].shape() == PartialShape{10});
  Output x = placeholder<float>(g, {-1, 28, 28, 1});
  CHECK(net(x).shape() == PartialShape{-1, 10});
  net(x);  // again, on the same variables
  CHECK(trainable_variables(g).size() == 4);
  Mlp second{g.scope("mlp")};
  CHECK(second.parameters()[0].name() == "mlp_1/h/W");
}

TEST_CASE("first weights differ by variable and seed and stay in their range") {
  auto weights = [](std::uint64_t seed) {
    Graph g(seed);
    Mlp net{g.scope("mlp")};
    Interpreter run(g);
    run.init();
    return std::vector<Tensor>{run.variable(net.parameters()[0]),
                               run.variable(net.parameters()[2])};
  };
  auto a = weights(1), again = weights(1), b = weights(2);
  CHECK(Tensor::same(a[0], again[0]));
  CHECK_FALSE(Tensor::same(a[0], b[0]));
  CHECK(a[0].data<float>()[0] != a[1].data<float>()[0]);
  const double reach = std::sqrt(6.0 / (784 + 64));
  double mean = 0, most = 0;
  for (float w : a[0].span<float>()) mean += w, most = std::max(most, std::abs(double(w)));
  CHECK(most <= reach);
  CHECK(most > 0.99 * reach);
  CHECK(std::abs(mean / double(a[0].elements())) < 0.01 * reach);
}

TEST_CASE("a convolutional net runs, and its gradients reach every variable") {
  Graph g;
  struct Net : nn::Module {
    using Module::Module;
    nn::Conv2d conv{*this, "conv", 1, 4, 5};
    nn::MaxPool pool{2};
    nn::Linear out{*this, "out", 14 * 14 * 4, 10};
    Output operator()(Output x) const { return out(pool(relu(conv(x)))); }
  };
  Net net{g.scope("net")};
  auto [x, y] = data::digits(64).batch(16).repeat().outputs(g);
  Output loss = mean(softmax_cross_entropy(net(x), y));
  Op train = optim::Momentum{.lr = 0.01}.minimize(loss);
  CHECK(g.node(train.node()).control.size() == 4);
  Interpreter run(g);
  run.init();
  const float first = run.scalar(loss);
  CHECK(first > 1);
  CHECK(first < 10);
  run.run({}, {train});
}

TEST_CASE("a network learns drawn digits") {
  Graph g(7);
  auto [x, y] = data::digits(512).shuffle(512).batch(64).repeat().outputs(g);
  Mlp net{g.scope("mlp")};
  Output logits = net(x);
  Output loss = mean(softmax_cross_entropy(logits, y));
  Output accuracy = mean(cast<float>(argmax(logits, 1) == y));
  Op train = optim::Adam{.lr = 2e-3f}.minimize(loss);
  Interpreter run(g);
  run.init();
  const float before = run.scalar(accuracy);
  for (int i = 0; i < 60; ++i) run.run({}, {train});
  const float after = run.scalar(accuracy);
  INFO("accuracy " << before << " -> " << after);
  CHECK(before < 0.35);
  CHECK(after > 0.75);
}

TEST_CASE("dropout keeps the mean and draws anew in each run") {
  Graph g;
  Output x = constant(g, Tensor::of<float>(Shape{4000}, std::vector<float>(4000, 1.f)));
  Output y = dropout(x, 0.25);
  Interpreter run(g);
  Tensor first = run.run({y})[0], second = run.run({y})[0];
  CHECK_FALSE(Tensor::same(first, second));
  double total = 0;
  for (float v : first.span<float>()) {
    REQUIRE((v == 0 || v == doctest::Approx(1 / 0.75)));
    total += v;
  }
  CHECK(total / 4000 == doctest::Approx(1).epsilon(0.05));
  CHECK_THROWS_AS(dropout(x, 1.0), Error);
}
