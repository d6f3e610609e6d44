// Gradients where one value stands at two places: both parts of a layer's first state, two
// arguments of a function, two variables of a loop.
#include <doctest/doctest.h>

#include <functional>

#include "graph/gradients.hpp"
#include "ops/api.hpp"
#include "ops/nn/nn.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Output gradient(Output y, Output x) {
  return value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
}

struct SameStateNet : nn::Module {
  SameStateNet(Scope scope, nn::OverTime over_time)
      : Module(std::move(scope)),
        lstm(*this, "lstm", 1, 1, {.over_time = over_time, .dtype = DType::f64}) {}
  nn::Lstm lstm;
};

// The value, the slope and the bend of an LSTM at `s`, which is h and c at first.
std::vector<double> lstm_at(nn::OverTime over_time, bool length_known, bool two_nodes) {
  Graph g{3};
  SameStateNet net{g.scope("net"), over_time};
  const Output x = placeholder<double>(g, {length_known ? 2 : -1, 1, 1});
  const Output s = placeholder<double>(g, {1, 1});
  const auto [h, last] = net.lstm(x, {s, two_nodes ? identity(s) : s});
  const Output y = sum(square(h)) + sum(last.c), slope = gradient(y, s),
               bend = gradient(sum(slope), s);
  Session session(g, one_thread());
  session.init();
  std::vector<double> values;
  for (const Tensor& t : session.run({y, sum(slope), sum(bend)}, {},
                                     {{x, Tensor::of<double>({2, 1, 1}, {0.5, -0.3})},
                                      {s, Tensor::of<double>({1, 1}, {0.7})}}))
    values.push_back(t.item<double>());
  return values;
}

// The bend of f(x, x) at x = 0.8, for an f of two arguments.
using Binary = std::function<Output(Graph&, Output, Output)>;
double bend_at(const Binary& f) {
  Graph g;
  const Output x = placeholder<double>(g, PartialShape::scalar());
  const Output bend = gradient(gradient(f(g, x, x), x), x);
  Session session(g, one_thread());
  return session.run({bend}, {}, {{x, Tensor::scalar(0.8)}})[0].item<double>();
}

}  // namespace

TEST_CASE("an LSTM whose first state is one value twice has the gradients of its unrolled form") {
  const auto want = lstm_at(nn::OverTime::unrolled, true, true);
  for (nn::OverTime over_time : {nn::OverTime::fused, nn::OverTime::unrolled, nn::OverTime::loop})
    for (bool length_known : {true, false})
      for (bool two_nodes : {false, true}) {
        if (over_time == nn::OverTime::unrolled && !length_known) continue;
        CAPTURE(int(over_time));
        CAPTURE(length_known);
        CAPTURE(two_nodes);
        const auto got = lstm_at(over_time, length_known, two_nodes);
        for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]));
      }
}

TEST_CASE("calls, branches and loops that take one value twice have its whole gradient once") {
  const auto f = [](Output a, Output b) { return a * a * b + sin(a * b); };
  const double want = bend_at([&](Graph&, Output a, Output b) { return f(a, b); });
  CHECK(bend_at([&](Graph& g, Output a, Output b) {
          Function call = g.function("f", {f64_scalar, f64_scalar}, {f64_scalar},
                                     [&](Function&, Output x, Output y) { return f(x, y); });
          return call(a, b);
        }) == doctest::Approx(want));
  CHECK(bend_at([&](Graph&, Output a, Output b) {
          return cond(
              a > 0.0, [&] { return f(a, b); }, [&] { return a; });
        }) == doctest::Approx(want));
  CHECK(bend_at([&](Graph& g, Output a, Output b) {
          return std::get<2>(while_loop(
              std::tuple{constant(g, 0), a, b}, [](Output i, Output, Output) { return i < 1; },
              [&](Output i, Output x, Output y) {
                return std::tuple{i + 1, x, f(x, y)};
              }));
        }) == doctest::Approx(want));
}
