// Loops that a client writes in the paper's words, in runs.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "ops/data/data.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/graph/paper_loop.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Output counter(Graph& g, const char* name = "n") {
  return placeholder<std::int32_t>(g, PartialShape::scalar(), name);
}
Output real(Graph& g, const char* name = "x") {
  return placeholder<float>(g, PartialShape::scalar(), name);
}
float first_of(const std::vector<Tensor>& fetched) { return fetched.at(0).item<float>(); }

// n times v = body(v), where body takes what is around the loop by `constant`.
struct Times {
  Times(Graph& g, const char* frame, const Output& n, const Output& v) : loop(g, frame) {
    const Output most = loop.constant(n);
    const Output i = loop.variable(constant(g, 0));
    loop.variable(v);
    loop.again(i < most);
    loop.next(0, loop.passed(0) + 1);
  }
  Output value() const { return loop.passed(1); }
  Output repeat(const Output& next) {
    loop.next(1, next);
    return loop.last(1);
  }
  PaperLoop loop;
};

}  // namespace

TEST_CASE("steps run between the making of a loop and its end, in any place") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = real(g), twice = x + x, n = counter(g);
    PlacedSession s(g, place);
    const std::vector<Feed> fed{{x, Tensor::scalar(3.0f)}, {n, Tensor::scalar(4)}};
    CHECK(first_of(s->run({twice}, {}, fed)) == 6);
    PaperLoop loop(g, "powers");
    const Output most = loop.constant(n);
    const Output i = loop.variable(constant(g, 0)), v = loop.variable(x);
    CompiledStep before = s->compile({twice}, {}, {x, n});
    loop.again(i < most);
    const Output last = loop.last(1);
    // What needs the loop says what is missing, and nothing else suffers from that.
    const auto early = s->try_run({last}, {}, fed);
    REQUIRE_FALSE(early.ok());
    CHECK(early.status().code() == Code::invalid_argument);
    CHECK(early.status().text().find("'powers'") != std::string::npos);
    loop.next(0, loop.passed(0) + 1);
    CHECK(first_of(s->run({twice}, {}, fed)) == 6);
    loop.next(1, node(g, place.second, "Neg", {loop.passed(1)}).output() * 2.0f);
    CHECK(first_of(s->run({last}, {}, fed)) == 48);
    CHECK(first_of(before.run({Tensor::scalar(5.0f), Tensor::scalar(1)})) == 10);
    CHECK(first_of(s->run({last + 1.0f}, {}, fed)) == 49);
    (void)v;
  }
}

TEST_CASE("a loop in the paper's words does what while_loop does") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output n = counter(g), x = real(g), b = real(g, "b");
    Times outer(g, "outer", n, x);
    Times inner(g, "inner", outer.loop.merge(0), outer.value());
    Output inside = node(g, place.second, "Neg", {inner.value()}).output();
    Output y =
        outer.repeat(inner.repeat(inside * inner.loop.constant(outer.loop.constant(b))) + 1.0f);
    auto by_hand = [&](Output start) {
      return std::get<1>(while_loop(
          std::tuple{constant(g, 0), start}, [&](Output i, Output) { return i < n; },
          [&](Output i, Output v) {
            Output w = std::get<1>(while_loop(
                std::tuple{constant(g, 0), v}, [&](Output k, Output) { return k < i; },
                [&](Output k, Output w) {
                  return std::tuple{k + 1, -w * b};
                }));
            return std::tuple{i + 1, w + 1.0f};
          }));
    };
    Output z = by_hand(x);
    PlacedSession s(g, place);
    auto step = s->compile({y, z}, {}, {n, x, b});
    for (std::int32_t trips : {0, 1, 2, 7}) {
      auto got = step.run({Tensor::scalar(trips), Tensor::scalar(3.0f), Tensor::scalar(0.5f)});
      CHECK(got[0].item<float>() == got[1].item<float>());
    }
  }
}

TEST_CASE("a Dequeue between the Merge and the Switch of a loop") {
  Graph g;
  FIFOQueueOptions options;
  options.capacity = 32;
  Output queue = queue_on(g, "", options);
  Output fed = real(g, "fed");
  Op put = enqueue(queue, {fed});
  // sum = 0; while ((x = take()) >= 0) sum = sum * 2 + x; and x is what ended it.
  PaperLoop loop(g, "loop");
  Output sum = loop.variable(constant(g, 0.0f));
  Output taken;
  {
    auto inside = g.with_control({sum});
    taken = take_from(queue);
  }
  loop.again(taken >= 0.0f);
  Op through = loop.let_through(taken);
  loop.next(0, loop.passed(0) * 2.0f + through.output(1));
  Output total = loop.last(0), end = g.add("Leave", {through.output(0)});
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({total, end});
  auto run = [&](std::vector<float> elements) {
    for (float x : elements) s.run({}, {put}, {{fed, Tensor::scalar(x)}});
    return step.run();
  };
  auto three = run({1, 2, 3, -5});
  CHECK(three[0].item<float>() == (1 * 2 + 2) * 2 + 3);
  CHECK(three[1].item<float>() == -5);
  auto none = run({-1, 4, -7});
  CHECK(none[0].item<float>() == 0);
  CHECK(none[1].item<float>() == -1);
  auto one = step.run();  // what is left
  CHECK(one[0].item<float>() == 4);
  CHECK(one[1].item<float>() == -7);
  CHECK(s.run({queue_size(queue)})[0].item<std::int64_t>() == 0);
}

TEST_CASE("a loop in the paper's words reads and writes variables, in its condition, too") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Output n = real(g);
  // while ((v += 1) < n) v *= 2;
  PaperLoop loop(g, "loop");
  Output round = loop.variable(constant(g, 0)), most = loop.constant(n);
  Output seen;
  {
    auto inside = g.with_control({round});
    Op grown = assign_add(v, constant(g, 1.0f));
    seen = read(v, {grown});
  }
  loop.again(seen < most);
  Op through = loop.let_through(seen);
  Op doubled = assign(v, through.output(1) * 2.0f);
  {
    auto after = g.with_control({doubled});
    loop.next(0, identity(loop.passed(0) + 1));
  }
  Output rounds = loop.last(0), last = g.add("Leave", {through.output(0)});
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({rounds, last}, {}, {n});
  auto got = step.run({Tensor::scalar(20.0f)});  // 1 -> 2, 3 -> 6, 7 -> 14, 15 -> 30, 31
  CHECK(got[0].item<std::int32_t>() == 4);
  CHECK(got[1].item<float>() == 31);
  CHECK(first_of(s.run({v})) == 31);
  CHECK(step.run({Tensor::scalar(0.0f)})[0].item<std::int32_t>() == 0);
  CHECK(first_of(s.run({v})) == 32);
}

TEST_CASE("a loop in the paper's words on one side of a Switch does nothing on the other") {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p"), n = counter(g), x = real(g);
  Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {x, p}});
  Times times(g, "loop", n, sides.output(1));
  Op checked = assert_(times.loop.constant(p), {.message = "the wrong side"});
  Output next =
      g.add(NodeSpec{
                .op = "Mul", .inputs = {times.value(), constant(g, 2.0f)}, .control = {checked}})
          .output();
  Output y = times.repeat(next);
  Output joined = g.add("Merge", {sides.output(0), y});
  Session s(g, one_thread());
  auto step = s.compile({joined}, {}, {p, n, x});
  for (bool taken : {true, false})
    CHECK(first_of(step.run({Tensor::scalar(taken), Tensor::scalar(3), Tensor::scalar(5.0f)})) ==
          (taken ? 40 : 5));
}

TEST_CASE("a loop in the paper's words stands in a function, and in a branch") {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p"), n = counter(g), x = real(g);
  Function f = g.function("f", {f32_scalar}, {f32_scalar}, [&](Function&, Output v) {
    Times times(g, "loop", n, v);
    return times.repeat(times.value() + 1.0f);
  });
  Output y = cond(
      p, [&] { return f(x) * 2.0f; },
      [&] {
        Times times(g, "loop", n, x);
        return times.repeat(times.value() * times.loop.constant(x));
      });
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {p, n, x});
  auto run = [&](bool up) {
    return first_of(step.run({Tensor::scalar(up), Tensor::scalar(3), Tensor::scalar(2.0f)}));
  };
  CHECK(run(true) == 10);
  CHECK(run(false) == 16);
}

TEST_CASE("a failure in a loop in the paper's words says in which iteration it was") {
  Graph g;
  Output n = counter(g), x = real(g);
  Times times(g, "halving", n, x);
  Output halved = times.value() * 0.5f;
  Op checked = assert_(halved > 1.0f, {.message = "too small"});
  Output next =
      g.add(NodeSpec{.op = "Identity", .inputs = {halved}, .control = {checked}}).output();
  Output y = times.repeat(next);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n, x});
  CHECK(first_of(step.run({Tensor::scalar(2), Tensor::scalar(8.0f)})) == 2);
  const Status failed = step.try_run({Tensor::scalar(9), Tensor::scalar(8.0f)}).status();
  CHECK(failed.code() == Code::failed_precondition);
  CHECK_MESSAGE(failed.text().find("in iteration 2 of 'halving'") != std::string::npos,
                failed.text());
}
