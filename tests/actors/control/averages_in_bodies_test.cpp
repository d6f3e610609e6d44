// Moving averages in branches, functions and loops: training steps move them, and no others.
#include <doctest/doctest.h>

#include <functional>

#include "graph/gradients.hpp"
#include "ops/api.hpp"
#include "ops/nn/nn.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr DType kF64 = DType::f64;

struct AveragedNet : nn::Module {
  using Module::Module;
  nn::BatchNorm norm{*this, "norm", 1, {.epsilon = 0, .momentum = 0.75, .dtype = DType::f64}};
  Output trained(Output x) {
    auto training = train();
    return norm(x);
  }
};

// A batch of one channel of mean 4, and a loss that depends on its norm made by `place`.
struct Case {
  Graph g;
  AveragedNet net{g.scope("net")};
  Output x = constant(g, Tensor::of<double>({2, 1}, {1, 7}));
  Output loss, slope;  // of the layer's scale
  Op train;

  explicit Case(const std::function<Output(Graph&, AveragedNet&, Output)>& place) {
    const Output y = place(g, net, x);
    loss = sum(square(y - 3.0));
    train = optim::Sgd{.lr = 0.01}.minimize(loss);
    slope = value_or_throw(gradients(std::vector{loss}, std::vector{net.norm.scale().handle()}))[0];
  }
};

double mean_of(Session& s, const AveragedNet& net) {
  return s.run({net.norm.mean().value()})[0].span<double>()[0];
}

Output truth(Graph& g, bool value) { return constant(g, Tensor::scalar(value)); }

const std::pair<std::string, std::function<Output(Graph&, AveragedNet&, Output)>> kHomes[] = {
    {"the graph", [](Graph&, AveragedNet& net, Output x) { return net.trained(x); }},
    {"a branch",
     [](Graph& g, AveragedNet& net, Output x) {
       return cond(
           truth(g, true), [&] { return net.trained(x); }, [&] { return x; });
     }},
    {"a function",
     [](Graph& g, AveragedNet& net, Output x) {
       Function f = g.function("f", {{kF64, {2, 1}}}, {{kF64, {2, 1}}},
                               [&](Function&, Output v) { return net.trained(v); });
       return f(x);
     }},
    {"a loop",
     [](Graph& g, AveragedNet& net, Output x) {
       return std::get<1>(while_loop(
           std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < 1; },
           [&](Output i, Output) {
             return std::tuple{i + 1, net.trained(x)};
           }));
     }},
    {"a branch of a function in a loop", [](Graph& g, AveragedNet& net, Output x) {
       Function f = g.function("f", {{kF64, {2, 1}}}, {{kF64, {2, 1}}}, [&](Function&, Output v) {
         return cond(
             sum(v) > 0.0, [&] { return net.trained(v); }, [&] { return v; });
       });
       return std::get<1>(while_loop(
           std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < 1; },
           [&](Output i, Output v) {
             return std::tuple{i + 1, f(v)};
           }));
     }}};

}  // namespace

TEST_CASE("a fetch of the loss moves no average, wherever the layer stands") {
  double first_slope = 0;
  for (const auto& home : kHomes) {
    CAPTURE(home.first);
    Case c(home.second);
    Session s(c.g, one_thread());
    s.init();
    const double loss = s.run({c.loss})[0].item<double>();
    CHECK(loss > 0);
    CHECK(mean_of(s, c.net) == 0);
    // Values of bodies that were not moved are those that their gradients find.
    const double slope = s.run({c.slope})[0].span<double>()[0];
    CHECK(slope != 0);
    CHECK(mean_of(s, c.net) == 0);
    if (&home.second == &kHomes[0].second)
      first_slope = slope;
    else
      CHECK(slope == doctest::Approx(first_slope));
    s.run({}, {c.train});
    CHECK(mean_of(s, c.net) == doctest::Approx(1));
    s.run({c.loss});
    CHECK(mean_of(s, c.net) == doctest::Approx(1));
    s.run({c.loss}, {c.train});
    CHECK(mean_of(s, c.net) == doctest::Approx(1.75));
    s.run({}, moving_averages(c.loss));
    CHECK(mean_of(s, c.net) == doctest::Approx(0.75 * 1.75 + 1));
  }
}

TEST_CASE("of two calls of one function the one that is trained moves its averages") {
  Graph g;
  AveragedNet net{g.scope("net")};
  Output x = constant(g, Tensor::of<double>({2, 1}, {1, 7}));
  Function f = g.function("f", {{kF64, {2, 1}}}, {{kF64, {2, 1}}},
                          [&](Function&, Output v) { return net.trained(v); });
  Output trained = sum(square(f(x) - 3.0)), looked_at = sum(f(x * 100.0));
  Op train = optim::Sgd{.lr = 0.01}.minimize(trained);
  Session s(g, one_thread());
  s.init();
  s.run({looked_at}, {train});
  CHECK(mean_of(s, net) == doctest::Approx(1));
}

TEST_CASE("a loop that minimises moves the averages in each of its iterations") {
  Graph g;
  AveragedNet net{g.scope("net")};
  Output x = constant(g, Tensor::of<double>({2, 1}, {1, 7}));
  Output steps = placeholder<std::int32_t>(g, PartialShape::scalar());
  Output done = while_loop(
      constant(g, 0), [&](Output i) { return i < steps; },
      [&](Output i) {
        const Output y = cond(
            i >= 0, [&] { return net.trained(x); }, [&] { return x; });
        optim::Sgd{.lr = 0.01}.minimize(sum(square(net.trained(x) - 3.0)) + sum(y));
        return i + 1;
      });
  Session s(g, one_thread());
  s.init();
  s.run({done}, {}, {{steps, Tensor::scalar(1)}});
  const double once = mean_of(s, net);
  CHECK(once == doctest::Approx(1 + 0.75));  // both layers
  s.run({done}, {}, {{steps, Tensor::scalar(2)}});
  CHECK(mean_of(s, net) > once);
}

TEST_CASE("a function that calls itself leaves its averages alone unless it is trained") {
  Graph g;
  AveragedNet net{g.scope("net")};
  Output x = constant(g, Tensor::of<double>({2, 1}, {1, 7}));
  const ValueType batch{kF64, {2, 1}}, number{DType::i32, PartialShape::scalar()};
  Function f =
      g.function("f", {number, batch}, {batch}, [&](Function& self, const std::vector<Output>& a) {
        return cond(
            a[0] < 1, [&] { return net.trained(a[1]); },
            [&] {
              return self.call({a[0] - 1, a[1]})[0];
            });
      });
  Output y = sum(f.call({constant(g, 3), x})[0]);
  Session s(g, one_thread());
  s.init();
  s.run({y});
  CHECK(mean_of(s, net) == 0);
  s.run({}, moving_averages(y));
  CHECK(mean_of(s, net) == doctest::Approx(1));
}

TEST_CASE("a batch without rows moves no average") {
  Graph g;
  AveragedNet net{g.scope("net")};
  Output x = placeholder<double>(g, {-1, 1});
  Output y = net.trained(x);
  Session s(g, one_thread());
  s.init();
  const auto step = [&](const Tensor& batch) {
    s.run({y}, moving_averages(y), {{x, batch}});
    return s.run({net.norm.mean().value(), net.norm.variance().value()});
  };
  step(Tensor::of<double>({2, 1}, {1, 7}));
  const auto before = step(Tensor::of<double>({2, 1}, {1, 7}));
  const auto after = step(Tensor::zeros(kF64, Shape{0, 1}).value());
  for (int i = 0; i < 2; ++i) CHECK(Tensor::same(before[std::size_t(i)], after[std::size_t(i)]));
}
