// Gradients through functions and branches, of first and second order, against differences.
#include <doctest/doctest.h>

#include <cmath>

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
