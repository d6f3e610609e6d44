// Edges of branches and loops: what is rarely written, and easily computed wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/contains.hpp"
#include "tests/graph/paper_loop.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Output fed_number(Graph& g, const char* name = "x") {
  return placeholder<float>(g, PartialShape::scalar(), name);
}
Output whole_number(Graph& g, const char* name = "n") {
  return placeholder<std::int32_t>(g, PartialShape::scalar(), name);
}
float number_of(const std::vector<Tensor>& fetched) { return fetched.at(0).item<float>(); }

// `x` with one added until it is `limit`.
Output count_up(Output x, float limit) {
  return while_loop(
      x, [&](Output v) { return v < limit; }, [](Output v) { return v + 1.0f; });
}

// `body` of a value, n times.
Output repeat(Graph& g, Output n, Output value, const std::function<Output(Output)>& body) {
  return std::get<1>(while_loop(
      std::tuple{constant(g, 0), value}, [&](Output i, Output) { return i < n; },
      [&](Output i, Output v) {
        return std::tuple{i + 1, body(v)};
      }));
}

}  // namespace

TEST_CASE("a predicate from another device picks the branch, and the other one does nothing") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = fed_number(g);
    Output positive = node(g, place.second, "Greater", {x, constant(g, 0.0f)}).output();
    Op made = cond(
        positive, [] {},
        [&] {
          auto there = g.with_device(place.first);
          assert_(constant(g, false), {.message = "the wrong branch"});
        });
    PlacedSession s(g, place);
    auto step = s->compile({}, {made}, {x});
    CHECK(step.try_run({Tensor::scalar(1.0f)}).ok());
    const Status other = step.try_run({Tensor::scalar(-1.0f)}).status();
    CHECK(other.code() == Code::failed_precondition);
    CHECK(other.text().find("the wrong branch") != std::string::npos);
  }
}

TEST_CASE("a Merge with a fed input takes it, whatever becomes of the other") {
  Graph g;
  const Output fed = placeholder<float>(g, PartialShape::scalar(), "fed");
  const Output pred = placeholder<bool>(g, PartialShape::scalar(), "pred");
  const Op s = g.add(NodeSpec{.op = "Switch", .inputs = {constant(g, 2.0f), pred}});
  const Output merged = g.add("Merge", {fed, s.output(1)});
  Session session(g, one_thread());
  const auto run = [&](bool taken) {
    return session.try_run({merged}, {},
                           {{fed, Tensor::scalar(1.0f)}, {pred, Tensor::scalar(taken)}},
                           {.timeout = std::chrono::seconds(60)});
  };
  const auto one = run(false);
  REQUIRE_MESSAGE(one.ok(), one.status().text());
  CHECK((*one)[0].item<float>() == 1);
  CHECK(contains(run(true).status().text(), "two inputs are live"));
}

TEST_CASE("two variables whose containers and names read alike are two in a loop") {
  Graph g;
  const Variable a = variable(g, "a", 0.f, {.container = "a", .shared_name = "b c"});
  const Variable b = variable(g, "b", 0.f, {.container = "a b", .shared_name = "c"});
  const Output loop = while_loop(
      constant(g, 0), [](Output i) { return i < 1; },
      [&](Output i) {
        assign_add(a, constant(g, 1.f));
        assign_add(b, constant(g, 10.f));
        return i + 1;
      });
  Session s(g, one_thread());
  s.init();
  s.run({loop});
  const auto y = s.run({a.value(), b.value()});
  CHECK(y[0].item<float>() == 1);
  CHECK(y[1].item<float>() == 10);
}

TEST_CASE("a session does not run what a body that is being built may take back") {
  Graph g;
  const Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  const Variable before = variable(g, "before", 5.f);
  Session session(g, one_thread());
  session.init();
  Status inside, assigned;
  const auto build = [&](float first, bool fails) {
    return cond(
        p,
        [&] {
          const Variable w = variable(g, "w", first);
          inside = session.try_init();
          assigned = session.try_assign({{"before", Tensor::scalar(6.f)}});
          if (fails) throw std::runtime_error("no");
          return read(w);
        },
        [&] { return constant(g, 0.f); });
  };
  CHECK_THROWS_AS(build(1, true), std::runtime_error);
  CHECK(inside.code() == Code::failed_precondition);
  CHECK(assigned.code() == Code::failed_precondition);
  const Output y = build(2, false);
  session.init();
  session.assign({{"before", Tensor::scalar(7.f)}});
  CHECK(session.run({before.value()})[0].item<float>() == 7);
  CHECK(session.run({y}, {}, {{p, Tensor::scalar(true)}})[0].item<float>() == 2);
}

TEST_CASE("a session does not run what an attempt at its graph may take back") {
  Graph g;
  const Output x = constant(g, 3.f);
  Session session(g, one_thread());
  {
    GraphBuilder::Attempt attempt(g);
    const Output y = x + x;
    CHECK(session.try_run({y}).status().code() == Code::failed_precondition);
    CHECK(session.try_run({x}).status().code() == Code::failed_precondition);
  }
  CHECK(session.run({x})[0].item<float>() == 3);
  GraphBuilder::Attempt outer(g);
  outer.keep();
  const Output z = x * x;
  CHECK(session.try_run({z}).status().code() == Code::failed_precondition);
}

TEST_CASE("a constant predicate takes its branch, and the other one does nothing") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0f));
  auto pick = [&](bool which) {
    return cond(
        constant(g, which),
        [&] {
          assign_add(v, constant(g, 1.0f));
          return constant(g, 10.0f);
        },
        [&] {
          assign_add(v, constant(g, 100.0f));
          return constant(g, 20.0f);
        });
  };
  Output yes = pick(true), no = pick(false);
  Session s(g, one_thread());
  s.init();
  CHECK(number_of(s.run({yes})) == 10);
  CHECK(number_of(s.run({v})) == 2);
  CHECK(number_of(s.run({no})) == 20);
  CHECK(number_of(s.run({v})) == 102);
}

TEST_CASE("a branch that writes and returns what is around it writes only where it is taken") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = placeholder<bool>(g, PartialShape::scalar(), "p"), x = fed_number(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(0.0f));
    Output y = cond(
        p,
        [&] {
          assign(v, constant(g, 1.0f));
          return x;
        },
        [&] { return x; });
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({y}, {}, {p, x});
    CHECK(number_of(step.run({Tensor::scalar(false), Tensor::scalar(4.0f)})) == 4);
    CHECK(number_of(s->run({v})) == 0);
    CHECK(number_of(step.run({Tensor::scalar(true), Tensor::scalar(5.0f)})) == 5);
    CHECK(number_of(s->run({v})) == 1);
  }
}

TEST_CASE("a loop stands in either branch, and the gradient is that of the branch") {
  for (bool in_then : {true, false}) {
    CAPTURE(in_then);
    Graph g;
    Output p = placeholder<bool>(g, PartialShape::scalar(), "p"), x = fed_number(g);
    auto loop = [&] { return count_up(x, 10); };
    auto plain = [&] { return x * 2.0f; };
    Output fed = in_then ? cond(p, loop, plain) : cond(p, plain, loop);
    Output known = in_then ? cond(constant(g, true), loop, plain)
                           : cond(constant(g, 1) < constant(g, 0), plain, loop);
    Output dx = value_or_throw(gradients(std::vector{fed}, std::vector{x}))[0];
    Session s(g, one_thread());
    auto step = s.compile({fed, known, dx}, {}, {p, x});
    for (bool takes_loop : {true, false}) {
      auto got = step.run({Tensor::scalar(takes_loop == in_then), Tensor::scalar(3.0f)});
      CHECK(got[0].item<float>() == (takes_loop ? 10 : 6));
      CHECK(got[1].item<float>() == 10);
      CHECK(got[2].item<float>() == (takes_loop ? 1 : 2));
    }
  }
}

TEST_CASE("a branch in a loop goes the same way in each iteration where its predicate says so") {
  Graph g;
  Output n = whole_number(g), p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output one = constant(g, 1.0f), start = fed_number(g);
  auto steps = [&](Output predicate) {
    return repeat(g, n, start, [&](Output v) {
      return cond(
          predicate, [&] { return v + one; }, [&] { return start; });
    });
  };
  Output fed = steps(p), always = steps(constant(g, true)),
         never = steps(constant(g, 1) < constant(g, 0));
  Session s(g, one_thread());
  auto step = s.compile({fed, always, never}, {}, {n, p, start});
  for (bool up : {true, false})
    for (std::int32_t trips : {0, 1, 10}) {
      auto got = step.run({Tensor::scalar(trips), Tensor::scalar(up), Tensor::scalar(5.0f)});
      CHECK(got[0].item<float>() == (up ? 5 + trips : 5));
      CHECK(got[1].item<float>() == 5 + trips);
      CHECK(got[2].item<float>() == 5);
    }
}

TEST_CASE("Switch and Merge of the client's own stand in the body of a loop") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output n = whole_number(g);
    auto body = [&](Output v) {
      Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {v, v < 10.0f}});
      return g.add("Merge", {sides.output(0) - 8.0f, sides.output(1) * 2.0f + 1.0f});
    };
    Output y = repeat(g, n, constant(g, 1.0f), body);
    // And in a loop of the client's own.
    PaperLoop loop(g, "paper");
    Output round = loop.variable(constant(g, 0)), most = loop.constant(n);
    loop.variable(constant(g, 1.0f));
    loop.again(round < most);
    loop.next(0, loop.passed(0) + 1);
    loop.next(1, body(loop.passed(1)));
    Output z = loop.last(1);
    PlacedSession s(g, place);
    auto step = s->compile({y, z}, {}, {n});
    for (std::int32_t trips : {0, 1, 3, 4, 9}) {
      float wanted = 1;
      for (int i = 0; i < trips; ++i) wanted = wanted < 10 ? wanted * 2 + 1 : wanted - 8;
      auto got = step.run({Tensor::scalar(trips)});
      CHECK(got[0].item<float>() == wanted);
      CHECK(got[1].item<float>() == wanted);
    }
  }
}

// One side is a call that must not happen on the other; in a loop of either kind.
TEST_CASE("a call, a loop or a branch on one side of a Switch in a loop dies with it") {
  Graph g;
  Output n = whole_number(g), never = constant(g, false);
  Function f = g.function("f", {f32_scalar}, {f32_scalar}, [&](Function&, Output x) {
    auto checked = g.with_control({assert_(never, {.message = "the wrong side"})});
    return identity(x);
  });
  const std::function<Output(Output)> calls[] = {
      [&](Output x) {
        Op checked = assert_(x < 0.0f, {.message = "the wrong side"});
        return g.add(NodeSpec{.op = "Identity", .inputs = {x}, .control = {checked}}).output();
      },
      [&](Output x) { return f(x); },
      [&](Output x) {
        return cond(
            never, [&] { return x; }, [&] { return f(x); });
      },
      [&](Output x) {
        return while_loop(
            x, [&](Output v) { return f(v) < 0.0f; }, [&](Output v) { return f(v); });
      }};
  auto body = [&](Output v, const std::function<Output(Output)>& call) {
    Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {v, v < 0.0f}});
    return g.add("Merge", {sides.output(0) + 1.0f, call(sides.output(1))});
  };
  for (const auto& call : calls) {
    Output by_builder = repeat(g, n, constant(g, 0.0f), [&](Output v) { return body(v, call); });
    PaperLoop loop(g, "paper");
    Output i = loop.variable(constant(g, 0)), most = loop.constant(n);
    loop.variable(constant(g, 0.0f));
    loop.again(i < most);
    loop.next(0, loop.passed(0) + 1);
    loop.next(1, body(loop.passed(1), call));
    Output raised = loop.last(1);
    Session s(g, one_thread());
    for (Output y : {by_builder, raised}) {
      auto step = s.compile({y}, {}, {n});
      CHECK(number_of(step.run({Tensor::scalar(4)})) == 4);
    }
  }
}

TEST_CASE("what one loop pushes onto a list another one takes off its end") {
  Graph g;
  Output n = whole_number(g);
  const ListPopOptions scalar{.shape = PartialShape::scalar()};
  Output empty = list_empty(g, DType::i32, {.shape = PartialShape::scalar()});
  Output pushed = std::get<1>(while_loop(
      std::tuple{constant(g, 0), empty}, [&](Output i, Output) { return i < n; },
      [&](Output i, Output list) {
        return std::tuple{i + 1, list_push(list, i)};
      }));
  Output total = std::get<1>(while_loop(
      std::tuple{pushed, constant(g, 0)},
      [&](Output list, Output) { return list_length(list) > std::int64_t{0}; },
      [&](Output list, Output sum) {
        auto [rest, last] = list_pop(list, DType::i32, scalar);
        return std::tuple{rest, sum * 2 + last};
      }));
  Session s(g, one_thread());
  auto step = s.compile({total, list_length(pushed)}, {}, {n});
  for (std::int32_t length : {0, 1, 10}) {
    std::int32_t wanted = 0;
    for (int i = length; i-- > 0;) wanted = wanted * 2 + i;
    auto got = step.run({Tensor::scalar(length)});
    CHECK(got[0].item<std::int32_t>() == wanted);
    CHECK(got[1].item<std::int64_t>() == length);
  }
}

TEST_CASE("what reads a list sees it as it was, whoever pushes onto it") {
  Graph g;
  Output x = fed_number(g), n = whole_number(g);
  Output list = list_push(list_empty(g, DType::f32, {.shape = PartialShape::scalar()}), x);
  Output left = list_push(list, x + 1.0f), right = list_push(list, x + 2.0f);
  // Each iteration pushes how long the list was.
  Output lengths =
      list_stack(repeat(g, n, list_empty(g, DType::i64, {.shape = PartialShape::scalar()}),
                        [](Output l) { return list_push(l, list_length(l)); }),
                 DType::i64, {.shape = PartialShape::scalar()});
  Session s(g, one_thread());
  auto step = s.compile({list_length(list), list_stack(left, DType::f32),
                         list_stack(right, DType::f32), list_stack(list, DType::f32), lengths},
                        {}, {x, n});
  for (int run = 0; run < 3; ++run) {
    auto got = step.run({Tensor::scalar(5.0f), Tensor::scalar(std::int32_t{20})});
    CHECK(got[0].item<std::int64_t>() == 1);
    CHECK(Tensor::same(got[1], Tensor::of<float>({2}, {5, 6})));
    CHECK(Tensor::same(got[2], Tensor::of<float>({2}, {5, 7})));
    CHECK(Tensor::same(got[3], Tensor::of<float>({1}, {5})));
    for (int i = 0; i < 20; ++i) CHECK(got[4].data<std::int64_t>()[i] == i);
  }
}

// Whoever waits for a write reads what it left; who does not wait reads what was there before.
TEST_CASE("control edges in a body, into it and around a loop") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output n = whole_number(g);
    Output fed = fed_number(g), c = constant(g, 2.0f);
    auto made = [&](const char* name) {
      return variable_on(g, place.second, name, Tensor::scalar(0.0f));
    };
    Variable count = made("count"), far = made("far"), set = made("set");
    // From a variable of the loop to what takes nothing: by a write of it, which counts iterations
    // of all runs, and to a constant.
    Output counted = repeat(g, n, constant(g, 0.0f), [&](Output v) {
      auto after = g.with_control({assign_add(count, v * 0.0f + 1.0f)});
      return read(count);
    });
    Output twelve = repeat(g, n, constant(g, 0.0f), [&](Output v) {
      auto after = g.with_control({v});
      return constant(g, 12.0f);
    });
    // The same where that variable is all that the condition sees.
    Output jump = while_loop(
        identity(fed), [](Output v) { return v < 10.0f; },
        [&](Output v) {
          auto after = g.with_control({assign_add(far, v * 0.0f + 12.0f)});
          return read(far);
        });
    // From outside to the loop, to one whose body takes something else from there, too, and to a
    // node of the body.
    Op write = assign(set, fed);
    Output around, taking;
    {
      auto after = g.with_control({write});
      around = repeat(g, n, constant(g, 0.0f), [&](Output v) { return v + read(set); });
      taking =
          repeat(g, n, constant(g, 0.0f), [&](Output v) { return v + identity(c) * read(set); });
    }
    Output inside = repeat(g, n, constant(g, 0.0f), [&](Output v) {
      auto after = g.with_control({write});
      return v + read(set);
    });
    // From a loop to what comes after it.
    Output behind;
    {
      auto after = g.with_control({counted});
      behind = read(count);
    }
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({counted, twelve, around, taking, inside, behind, jump}, {}, {n, fed});
    auto distance = s->compile({far});
    float trips_of_all = 0, x = -2;
    for (std::int32_t trips : {0, 1, 10}) {
      CAPTURE(trips);
      auto got = step.run({Tensor::scalar(trips), Tensor::scalar(--x)});
      trips_of_all += float(trips);
      CHECK(got[0].item<float>() == (trips ? trips_of_all : 0));
      CHECK(got[1].item<float>() == (trips ? 12 : 0));
      CHECK(got[2].item<float>() == x * float(trips));
      CHECK(got[3].item<float>() == 2 * x * float(trips));
      CHECK(got[4].item<float>() == x * float(trips));
      CHECK(got[5].item<float>() == trips_of_all);
      CHECK(got[6].item<float>() == 12);
      CHECK(number_of(distance.run()) == 12);
      s->run({}, {assign(far, constant(g, 0.0f))});
    }
  }
}

TEST_CASE("a loop after a write reads what was written") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output n = whole_number(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));
    Op written = assign(v, constant(g, 5.0f));
    Output total;
    {
      auto after = g.with_control({written});
      total = repeat(g, n, constant(g, 0.0f), [&](Output sum) { return sum + read(v); });
    }
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({total}, {}, {n});
    CHECK(number_of(step.run({Tensor::scalar(std::int32_t{3})})) == 15);
    CHECK(number_of(s->run({v})) == 5);
  }
}

TEST_CASE("a loop computes in place on nothing but its own") {
  Graph g;
  const Shape shape{1000};
  auto filled = [&](float value) {
    return Tensor::of<float>(shape, std::vector<float>(1000, value));
  };
  Output fed = placeholder<float>(g, shape, "fed"), fixed = constant(g, filled(3));
  Output made = fed * 1.0f;
  auto [i, a, b, c, same] = while_loop(
      std::tuple{constant(g, 0), fed, fixed, made, made},
      [](Output i, Output, Output, Output, Output) { return i < 50; },
      [&](Output i, Output a, Output b, Output c, Output same) {
        return std::tuple{i + 1, a + 1.0f, b + fixed, c + made, same};
      });
  Session s(g, one_thread());
  auto step = s.compile({a, b, c, same, made, fixed}, {}, {fed});
  const Tensor given = filled(2);
  const float wanted[] = {52, 153, 102, 2, 2, 3};
  for (int run = 0; run < 2; ++run) {
    auto got = step.run({given});
    for (std::size_t k = 0; k < 6; ++k) {
      CAPTURE(k);
      CHECK(Tensor::same(got[k], filled(wanted[k])));
    }
    CHECK(Tensor::same(given, filled(2)));
  }
}

TEST_CASE("a loop computes in place where nobody else holds the value") {
  constexpr std::int64_t kElements = 256 * 1024, kBytes = kElements * 4;
  auto peak = [&](bool held) {
    Graph g;
    Output fed = placeholder<float>(g, {kElements}, "fed");
    Output made = fed * 2.0f;
    Output y = repeat(g, constant(g, 20), made, [](Output v) { return (v + 1.0f) * 1.0f; });
    std::vector<Output> fetches{sum(y)};
    if (held) fetches.push_back(made);
    Session s(g, one_thread());
    auto step = s.compile(fetches, {}, {fed});
    const Tensor given = value_or_throw(Tensor::zeros(DType::f32, {kElements}));
    CHECK(number_of(step.run({given})) == 20 * kElements);
    s.memory(true);
    CHECK(number_of(step.run({given})) == 20 * kElements);
    return s.memory()[0].peak;
  };
  const std::uint64_t own = peak(false), beside = peak(true);
  CAPTURE(own);
  CAPTURE(beside);
  CHECK(own < 2 * kBytes);
  CHECK(beside >= own + kBytes);
  CHECK(beside < 3 * kBytes);
}

TEST_CASE("a function of two variables sees where they are one") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));
    Variable w = variable_on(g, place.second, "w", Tensor::scalar(10.0f));
    Function f = g.function("f", {}, {f32_scalar}, [&](Function&) {
      Output before = read(v);
      return read(v, {assign(w, before + 4.0f)});
    });
    auto call = [&](const Variable& a, const Variable& b) {
      return g.add(NodeSpec{
          .op = "Call", .inputs = {a.handle(), b.handle()}, .attrs = {{"function", f.name()}}});
    };
    Output two = call(v, w).output(), one = call(v, v).output();
    PlacedSession s(g, place);
    s->init();
    CHECK(number_of(s->run({two})) == 1);
    CHECK(number_of(s->run({w})) == 5);
    CHECK(number_of(s->run({one})) == 5);
    CHECK(number_of(s->run({v})) == 5);
  }
}
