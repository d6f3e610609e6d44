// Gradients through functions and branches, of first and second order, against differences.
#include <doctest/doctest.h>

#include <cmath>

#include "core/hash.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/support/gradient_check.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct Experts : nn::Module {
  using Module::Module;
  nn::Linear first{*this, "first", 3, 1}, second{*this, "second", 3, 1};
};

Tensor side(bool value) { return Tensor::scalar(value); }

// Values of random Switches in Switches, whose sides also take values from around them.
class RandomSides {
 public:
  RandomSides(Graph& g, Random& random, std::vector<Output> predicates, Output x)
      : g_(g), random_(random), predicates_(std::move(predicates)), values_{{x, sin(x)}} {}

  Output merged(int depth) {
    const Output p = one_of(predicates_);
    const bool three = random_.below(3) == 0;
    NodeSpec spec{.op = three ? "SwitchN" : "Switch",
                  .inputs = {one_of(values_.back()) + any() * 0.25, p}};
    if (three) spec.inputs[1] = cast<std::int32_t>(p) + cast<std::int32_t>(one_of(predicates_));
    if (three) spec.attrs = {{"N", std::int64_t{3}}};
    std::vector<Output> sides = g_.add(std::move(spec)).outputs(), results;
    for (const Output& side : sides) {
      values_.push_back({side});
      for (int k = 0; k < 3; ++k) {
        const Output value = made(depth) + side * 0.125;
        values_.back().push_back(value);
      }
      results.push_back(values_.back().back());
      values_.pop_back();
    }
    return g_.add(NodeSpec{.op = "Merge", .inputs = results}).output();
  }

 private:
  Output one_of(const std::vector<Output>& some) { return some[random_.below(some.size())]; }
  Output any() { return one_of(values_[random_.below(values_.size())]); }
  Output made(int depth) {
    switch (random_.below(4)) {
      case 0:
        return any() * any();
      case 1:
        return sin(any());
      case 2:
        return any() - any() * 0.5;
      default:
        return depth > 0 ? merged(depth - 1) : tanh(any());
    }
  }

  Graph& g_;
  Random& random_;
  const std::vector<Output> predicates_;
  std::vector<std::vector<Output>> values_;  // from the outside inwards
};

}  // namespace

TEST_CASE("gradients of both branches of cond, twice") {
  for (const Place& place : kPlaces)
    for (bool taken : {true, false}) {
      CAPTURE(taken);
      check_gradients(
          [&](Graph& g, Output p, Output x) {
            return cond(
                p, [&] { return x * x * x; },
                [&] { return node(g, place.second, "Exp", {x * 0.5}).output() * x; });
          },
          {side(taken)}, place);
    }
}

TEST_CASE("a value that only one branch uses gets zeros from the other") {
  for (bool taken : {true, false})
    check_gradients(
        [](Graph& g, Output p, Output x) {
          return cond(
                     p, [&] { return x * x; },
                     [&] {
                       return constant(g, Tensor::of<double>({3}, {1, 2, 3}));
                     }) +
                 x;
        },
        {side(taken)});
}

TEST_CASE("gradients through calls of a function, also of one in another") {
  const ValueType three{DType::f64, {3}};
  check_gradients(
      [&](Graph& g, Output p, Output x) {
        Function f = g.function("f", {three}, {three},
                                [](Function&, Output k) { return k * k * k + sin(k); });
        Function h = g.function("h", {three, three}, {three}, [&](Function&, Output a, Output b) {
          return f(a) * b + cast<double>(p);
        });
        return h(x, f(x));
      },
      {side(true)});
}

TEST_CASE("gradients through branches in branches, twice") {
  for (bool taken : {true, false})
    check_gradients(
        [](Graph&, Output p, Output x) {
          Output q = sum(x) > constant(x.graph(), 1.0);
          return cond(
              p,
              [&] {
                Output y = exp(x * 0.1);
                return cond(
                    q, [&] { return y * y * x; }, [&] { return y; });
              },
              [&] {
                return cond(
                    q, [&] { return x; }, [&] { return x * x; });
              });
        },
        {side(taken)});
}

TEST_CASE("gradients through every branch of switch_case, twice") {
  for (std::int32_t index : {0, 1, 2, 9})
    check_gradients(
        [](Graph&, Output index, Output x) {
          return switch_case(index, {[&] { return x * x * x * x; }, [&] { return x * 2.0; },
                                     [&] { return tanh(x); }});
        },
        {Tensor::scalar(index)});
}

TEST_CASE("a variable that a branch reads gets its gradient, and none of it where it does not") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(3.0));
    Variable w = variable_on(g, place.first, "w", Tensor::scalar(5.0));
    Output y = cond(
        p, [&] { return read(v) * read(v) * w.value(); }, [&] { return read(w) * read(w); });
    Output dv = gradient_of(y, v), dw = gradient_of(y, w);
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({dv, dw}, {}, {p});
    auto taken = step.run({side(true)}), other = step.run({side(false)});
    CHECK(taken[0].item<double>() == 30);
    CHECK(taken[1].item<double>() == 9);
    CHECK(other[0].item<double>() == 0);
    CHECK(other[1].item<double>() == 10);
  }
}

TEST_CASE("forward values are not computed again for the gradient") {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Variable count = variable(g, "count", Tensor::scalar(0.0));
  Output y = cond(
      p,
      [&] {
        assign_add(count, constant(g, 1.0));
        return random_uniform_like(x) * x;  // drawn again it would be another number
      },
      [&] { return x; });
  Output dx = gradient_of(y, x);
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({y, dx}, {}, {p, x});
  for (int i = 0; i < 3; ++i) {
    auto got = step.run({side(true), Tensor::scalar(2.0)});
    CHECK(got[0].item<double>() == 2 * got[1].item<double>());
  }
  CHECK(s.run({count})[0].item<double>() == 3);
  // Only the gradient is asked for: its function runs once, with all that it does.
  s.compile({dx}, {}, {p, x}).run({side(true), Tensor::scalar(2.0)});
  CHECK(s.run({count})[0].item<double>() == 4);
}

TEST_CASE("gradients that are asked for after a step was run leave it as it was") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
    Output x = placeholder<double>(g, PartialShape::scalar(), "x");
    Output y = cond(
        p, [&] { return node(g, place.second, "Square", {x}).output(); }, [&] { return -x; });
    PlacedSession s(g, place);
    auto before = s->compile({y}, {}, {p, x});
    CHECK(before.run({side(true), Tensor::scalar(3.0)})[0].item<double>() == 9);
    Output dx = gradient_of(y, x);
    auto after = s->compile({y, dx}, {}, {p, x});
    auto got = after.run({side(true), Tensor::scalar(3.0)});
    CHECK(got[0].item<double>() == 9);
    CHECK(got[1].item<double>() == 6);
    CHECK(before.run({side(false), Tensor::scalar(3.0)})[0].item<double>() == -3);
  }
}

TEST_CASE("a read behind a write in a branch has no gradient, and says so") {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  Op written = cond(
      p, [&] { assign(v, constant(g, 1.0)); }, [&] {});
  Output y = read(v, {written}) * 2.0;
  auto refused = gradients(std::vector{y}, std::vector{v.handle()});
  CHECK(refused.status().code() == Code::invalid_argument);
  CHECK(refused.status().text().find("cond") != std::string::npos);
}

TEST_CASE("gradients inside a body are of what the body made") {
  Graph g;
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Output outer = x * x;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output y = cond(
      p,
      [&] {
        Output z = x * x * x;
        return gradient_of(z, x);
      },
      [&] { return x; });
  CHECK_THROWS_AS(cond(
                      p, [&] { return gradient_of(outer, x); }, [&] { return x; }),
                  Error);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {p, x});
  CHECK(step.run({side(true), Tensor::scalar(2.0)})[0].item<double>() == 12);
}

TEST_CASE("an optimizer trains the expert that an index picks, and leaves the other as it is") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output index = placeholder<std::int32_t>(g, PartialShape::scalar(), "index");
    Variable a = variable_on(g, place.first, "a", Tensor::scalar(1.0f));
    Variable b = variable_on(g, place.second, "b", Tensor::scalar(2.0f));
    Output y = switch_case(index, {[&] { return read(a) * 3.0f; }, [&] { return read(b) * 5.0f; }});
    Op train = optim::Sgd{.lr = 0.1}.minimize(y, {a, b});
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({y}, {train}, {index});
    CHECK(step.run({Tensor::scalar(std::int32_t{1})})[0].item<float>() == 10);
    auto now = s->run({a, b});
    CHECK(now[0].item<float>() == 1);
    CHECK(now[1].item<float>() == doctest::Approx(1.5));
  }
}

TEST_CASE("gradients go through Switch and Merge of the client's own, twice") {
  for (bool taken : {true, false})
    check_gradients(
        [](Graph& g, Output p, Output x) {
          Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {x, p}});
          Op other = g.add(NodeSpec{.op = "Switch", .inputs = {x * 2.0, p}});  // one side unused
          Output a = sides.output(0) * sides.output(0) * sides.output(0);
          Output b = exp(sides.output(1)) * other.output(1);
          return g.add(NodeSpec{.op = "Merge", .inputs = {a, b}}).output() + x;
        },
        {side(taken)});
}

TEST_CASE("a value from outside that a side of a client's Switch takes has gradients, twice") {
  for (bool taken : {true, false})
    check_gradients(
        [](Graph& g, Output p, Output x) {
          Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {x, p}});
          Op inner = g.add(NodeSpec{.op = "Switch", .inputs = {sides.output(1) * x, sum(x) > 0.0}});
          Output in = g.add(NodeSpec{.op = "Merge",
                                     .inputs = {inner.output(0) * exp(x), inner.output(1) * x}})
                          .output();
          return g.add(NodeSpec{.op = "Merge", .inputs = {sides.output(0) * x, in * x}}).output() +
                 x * x;
        },
        {side(taken)});
}

TEST_CASE("random Switches in Switches have gradients, twice") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Graph g;
    const Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
    const Output q = placeholder<bool>(g, PartialShape::scalar(), "q");
    const Output x = placeholder<double>(g, PartialShape::scalar(), "x");
    RandomSides sides(g, random, {p, q}, x);
    const Output y = sides.merged(2) + sides.merged(2) * x;
    const Output dx = gradient_of(y, x), ddx = gradient_of(dx, x);
    Session s(g, one_thread());
    const auto step = s.compile({y, dx, ddx}, {}, {p, q, x});
    for (int taken = 0; taken < 4; ++taken) {
      CAPTURE(taken);
      constexpr double kStep = 1e-5;
      const auto at = [&](double move) {
        return step.run(
            {side((taken & 1) != 0), side((taken & 2) != 0), Tensor::scalar(0.7 + move)});
      };
      const auto here = at(0), up = at(kStep), down = at(-kStep);
      for (std::size_t k : {0, 1}) {
        const double slope = (up[k].item<double>() - down[k].item<double>()) / (2 * kStep);
        CHECK(here[k + 1].item<double>() == doctest::Approx(slope).epsilon(1e-5).scale(1));
      }
    }
  }
}

TEST_CASE("a variable that one side of a client's Switch reads learns from all of a step") {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output index = placeholder<std::int32_t>(g, PartialShape::scalar(), "index");
  Variable w = variable(g, "w", Tensor::scalar(1.0));
  Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {constant(g, 3.0), p}});
  Op cases = g.add(NodeSpec{
      .op = "SwitchN", .inputs = {constant(g, 5.0), index}, .attrs = {{"N", std::int64_t{3}}}});
  Output a =
      g.add(NodeSpec{.op = "Merge", .inputs = {sides.output(0), sides.output(1) * w}}).output();
  Output b = g.add(NodeSpec{.op = "Merge",
                            .inputs = {cases.output(0), cases.output(1) * w, cases.output(2)}})
                 .output();
  Op train = optim::Sgd{.lr = 0.125}.minimize(a + b + 2.0 * w);
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({}, {train}, {p, index});
  double wanted = 1;
  for (bool taken : {false, true})
    for (std::int32_t i : {0, 1, 2}) {
      CAPTURE(taken);
      CAPTURE(i);
      step.run({Tensor::scalar(taken), Tensor::scalar(i)});
      wanted -= 0.125 * (2 + (taken ? 3 : 0) + (i == 1 ? 5 : 0));
      CHECK(now(s, w) == doctest::Approx(wanted));
    }
}

TEST_CASE("bodies that know shapes from constants around them have gradients, twice") {
  for (bool taken : {true, false})
    check_gradients(
        [](Graph& g, Output p, Output x) {
          Output dims = constant(g, std::vector<std::int64_t>{3, 1});
          return cond(
              p, [&] { return sum(tanh(reshape(x, dims)), 1); }, [&] { return exp(x); });
        },
        {side(taken)});
}

TEST_CASE("a gradient uses what a body makes of a constant around it that is fed") {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output x = placeholder<double>(g, {3}, "x");
  Output n = constant(g, std::int64_t{1});
  Output y = cond(
      p, [&] { return gather(x, n + 1) * 2.0; }, [&] { return sum(x); });
  Output dx = gradient_of(y, x);
  Session s(g, one_thread());
  const auto slope = [&](std::int64_t at) {
    const Tensor got = s.run({dx}, {},
                             {{p, Tensor::scalar(true)},
                              {x, Tensor::of<double>({3}, {1, 2, 3})},
                              {n, Tensor::scalar(at)}})[0];
    return std::vector<double>(got.span<double>().begin(), got.span<double>().end());
  };
  CHECK(slope(1) == std::vector<double>{0, 0, 2});
  CHECK(slope(0) == std::vector<double>{0, 2, 0});
}

TEST_CASE("layers in branches learn, each from the steps that take it") {
  Graph g(3);
  Output index = placeholder<std::int32_t>(g, PartialShape::scalar(), "index");
  Output x = constant(g, Tensor::of<float>({2, 3}, {1, 0, 2, 0, 1, -1}));
  Output wanted = constant(g, Tensor::of<float>({2, 1}, {1, -2}));
  Experts net{g.scope("net")};
  Output y =
      switch_case(index, {[&] { return net.first(x); }, [&] { return net.second(x) * 2.0f; }});
  Output loss = mean((y - wanted) * (y - wanted));
  Op train = optim::Sgd{.lr = 0.05}.minimize(loss);
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({loss}, {train}, {index});
  auto value = s.compile({loss}, {}, {index});
  auto loss_of = [&](std::int32_t i) { return value.run({Tensor::scalar(i)})[0].item<float>(); };
  const float before = loss_of(1);
  for (int i = 0; i < 60; ++i) step.run({Tensor::scalar(std::int32_t{0})});
  CHECK(loss_of(0) < 0.05f);
  CHECK(loss_of(1) == before);
  for (int i = 0; i < 60; ++i) step.run({Tensor::scalar(std::int32_t{1})});
  CHECK(loss_of(1) < 0.05f);
}
