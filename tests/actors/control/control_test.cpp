// Functions and branches in runs: what is computed, what happens, and what does not, in one process
// and over two.
#include <doctest/doctest.h>

#include <cmath>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Output flag(Graph& g) { return placeholder<bool>(g, PartialShape::scalar(), "flag"); }
Output number(Graph& g, const char* name = "x") {
  return placeholder<float>(g, PartialShape::scalar(), name);
}
Tensor yes() { return Tensor::scalar(true); }
Tensor no() { return Tensor::scalar(false); }
float first(const std::vector<Tensor>& fetched) { return fetched.at(0).item<float>(); }

// A session after Session::init, in which one fetch is run again and again.
struct Ran {
  Ran(Graph& g, const Place& place) : s(g, place) { s->init(); }
  float value(Output o) { return first(s->run({o})); }
  PlacedSession s;
};

}  // namespace

TEST_CASE("cond runs the branch that the predicate names, and only that one") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g), x = number(g);
    Output y = cond(
        p, [&] { return node(g, place.second, "Neg", {x}).output(); },
        [&] {
          auto checked = g.with_control({assert_(p, {.message = "the wrong branch"})});
          return x * x;
        });
    PlacedSession s(g, place);
    auto step = s->compile({y}, {}, {p, x});
    CHECK(first(step.run({yes(), Tensor::scalar(3.0f)})) == -3);
    Status asserted = step.try_run({no(), Tensor::scalar(3.0f)}).status();
    CHECK(asserted.code() == Code::failed_precondition);
    CHECK(asserted.text().find("cond/else/Assert") != std::string::npos);
    CHECK(first(step.run({yes(), Tensor::scalar(4.0f)})) == -4);
  }
}

TEST_CASE("an integer division by zero in a branch that is not taken does not happen") {
  Graph g;
  Output a = placeholder<std::int32_t>(g, PartialShape::scalar());
  Output d = placeholder<std::int32_t>(g, PartialShape::scalar());
  Output safe = cond(
      d != 0, [&] { return a / d; }, [&] { return zeros_like(a); });
  Session s(g, one_thread());
  auto step = s.compile({safe}, {}, {a, d});
  CHECK(step.run({Tensor::scalar(7), Tensor::scalar(2)})[0].item<std::int32_t>() == 3);
  CHECK(step.run({Tensor::scalar(7), Tensor::scalar(0)})[0].item<std::int32_t>() == 0);
}

TEST_CASE("a constant, and a value as it is, are results of branches like others") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g), x = number(g);
    Output one = cond(
        p, [&] { return constant(g, 1.0f); }, [&] { return x; });
    Output same = cond(
        p, [&] { return x; }, [&] { return x; });
    Output both = cond(
        p, [&] { return constant(g, 5.0f); }, [&] { return constant(g, 6.0f); });
    Output last = node(g, place.second, "Neg", {both}).output();
    PlacedSession s(g, place);
    auto step = s->compile({one, same, last}, {}, {p, x});
    auto taken = step.run({yes(), Tensor::scalar(3.0f)});
    auto other = step.run({no(), Tensor::scalar(4.0f)});
    CHECK(taken[0].item<float>() == 1);
    CHECK(taken[1].item<float>() == 3);
    CHECK(taken[2].item<float>() == -5);
    CHECK(other[0].item<float>() == 4);
    CHECK(other[1].item<float>() == 4);
    CHECK(other[2].item<float>() == -6);
  }
}

TEST_CASE("what depends on constants alone in a branch is not folded out of it") {
  Graph g;
  Output p = flag(g);
  Output y = cond(
      p, [&] { return sqrt(constant(g, 4.0f)) + 1.0f; }, [&] { return constant(g, 0.0f); });
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {p});
  CHECK(first(step.run({yes()})) == 3);
  CHECK(first(step.run({no()})) == 0);
}

TEST_CASE("equal nodes of two branches stay two") {
  Graph g;
  Output p = flag(g);
  auto made = [&] { return sqrt(constant(g, 9.0f)); };
  Output y = cond(p, made, made);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {p});
  CHECK(first(step.run({yes()})) == 3);
  CHECK(first(step.run({no()})) == 3);
}

TEST_CASE("switch_case runs the branch of the index, and the last one out of range") {
  for (const Place& place : kPlaces) {
    for (bool wide : {false, true}) {
      CAPTURE(place.name);
      Graph g;
      Output x = number(g), small = placeholder<std::int32_t>(g, PartialShape::scalar());
      Output large = placeholder<std::int64_t>(g, PartialShape::scalar());
      Output index = wide ? large : small;
      Output y = switch_case(index, {[&] { return x + 1.0f; },
                                     [&] { return node(g, place.second, "Neg", {x}).output(); },
                                     [&] { return constant(g, 100.0f); }});
      PlacedSession s(g, place);
      auto step = s->compile({y}, {}, {index, x});
      auto at = [&](int i) {
        Tensor fed = wide ? Tensor::scalar(std::int64_t(i)) : Tensor::scalar(std::int32_t(i));
        return first(step.run({fed, Tensor::scalar(5.0f)}));
      };
      CHECK(at(0) == 6);
      CHECK(at(1) == -5);
      CHECK(at(2) == 100);
      CHECK(at(3) == 100);
      CHECK(at(-1) == 100);
    }
  }
}

TEST_CASE("a write in a branch that is not taken neither happens nor keeps a run from its commit") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));
    Variable w = variable_on(g, place.first, "w", Tensor::scalar(10.0f));
    Output y = cond(
        p,
        [&] {
          assign_add(v, constant(g, 1.0f));
          return constant(g, 1.0f);
        },
        [&] {
          assign_add(w, constant(g, 5.0f));
          return constant(g, 0.0f);
        });
    Ran r(g, place);
    auto step = r.s->compile({y}, {}, {p});
    CHECK(first(step.run({yes()})) == 1);
    CHECK(r.value(v) == 2);
    CHECK(r.value(w) == 10);
    CHECK(first(step.run({no()})) == 0);
    CHECK(r.value(v) == 2);
    CHECK(r.value(w) == 15);
  }
}

TEST_CASE("a branch of writes alone is a target, and in a run of it nothing may be written") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));
    Op made = cond(
        p, [&] { assign(v, constant(g, 7.0f)); }, [&] {});
    Ran r(g, place);
    auto step = r.s->compile({}, {made}, {p});
    step.run({no()});
    CHECK(r.value(v) == 1);
    step.run({yes()});
    CHECK(r.value(v) == 7);
  }
}

TEST_CASE("a write after a branch with a write of the same variable comes after it, taken or not") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));
    Op inside = cond(
        p, [&] { assign(v, constant(g, 5.0f)); }, [&] {});
    Op outside = assign_add(v, constant(g, 1.0f));  // no edge of the client's between them
    Ran r(g, place);
    auto step = r.s->compile({}, {inside, outside}, {p});
    step.run({no()});
    CHECK(r.value(v) == 2);
    step.run({yes()});
    CHECK(r.value(v) == 6);
  }
}

TEST_CASE("a read after a branch sees what the branch wrote, and the snapshot when it did not") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));
    Op made = cond(
        p, [&] { assign(v, constant(g, 5.0f)); }, [&] {});
    Output after = read(v, {made});
    Ran r(g, place);
    auto step = r.s->compile({after}, {}, {p});
    CHECK(first(step.run({no()})) == 1);
    CHECK(first(step.run({yes()})) == 5);
    CHECK(first(step.run({no()})) == 5);
  }
}

TEST_CASE("a read in a branch that is not taken is not asked") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));  // not initialised
    Output y = cond(
        p, [&] { return read(v); }, [&] { return constant(g, -1.0f); });
    PlacedSession s(g, place);
    auto step = s->compile({y}, {}, {p});
    CHECK(first(step.run({no()})) == -1);
    CHECK(step.try_run({yes()}).status().code() == Code::failed_precondition);
    CHECK(first(step.run({no()})) == -1);
  }
}

TEST_CASE("a queue in a branch that is not taken keeps its elements, and nobody waits for it") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g), x = number(g);
    Output queue = queue_on(g, place.second);
    Output y = cond(
        p, [&] { return take_from(queue); },
        [&] {
          enqueue(queue, {x});
          return x;
        });
    PlacedSession s(g, place);
    auto step = s->compile({y}, {}, {p, x});
    CHECK(first(step.run({no(), Tensor::scalar(4.0f)})) == 4);
    CHECK(first(step.run({no(), Tensor::scalar(5.0f)})) == 5);
    CHECK(first(step.run({yes(), Tensor::scalar(0.0f)})) == 4);
    CHECK(first(step.run({yes(), Tensor::scalar(0.0f)})) == 5);
  }
}

TEST_CASE("a branch inside a branch that is not taken is dead with all that it does") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g), q = placeholder<bool>(g, PartialShape::scalar(), "inner"), x = number(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(0.0f));
    Output y = cond(
        p,
        [&] {
          return cond(
              q,
              [&] {
                assign_add(v, constant(g, 1.0f));
                return x + 1.0f;
              },
              [&] {
                assign_add(v, constant(g, 10.0f));
                return node(g, place.second, "Neg", {x}).output();
              });
        },
        [&] { return constant(g, 0.0f); });
    Ran r(g, place);
    auto step = r.s->compile({y}, {}, {p, q, x});
    auto run = [&](Tensor a, Tensor b) { return first(step.run({a, b, Tensor::scalar(2.0f)})); };
    CHECK(run(yes(), yes()) == 3);
    CHECK(run(yes(), no()) == -2);
    CHECK(run(no(), yes()) == 0);
    CHECK(run(no(), no()) == 0);
    CHECK(r.value(v) == 11);
  }
}

TEST_CASE("a control edge from a branch is never dead") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g), x = number(g);
    Op made = cond(
        p, [&] { assert_(p); }, [&] {});
    Output after;
    {
      auto later = g.with_control({made});
      after = node(g, place.second, "Neg", {x}).output();
    }
    PlacedSession s(g, place);
    auto step = s->compile({after}, {}, {p, x});
    CHECK(first(step.run({yes(), Tensor::scalar(1.0f)})) == -1);
    CHECK(first(step.run({no(), Tensor::scalar(2.0f)})) == -2);
  }
}

TEST_CASE("a function is called many times, with what it takes from around it") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = number(g), scale = number(g, "scale");
    Function f = g.function("scaled", {f32_scalar}, {f32_scalar},
                            [&](Function&, Output k) { return k * k * scale; });
    Output inner = cond(
        x > 0.0f, [&] { return f(x); }, [&] { return f(-x) + f(x); });
    Output y = f(f(x)) + inner;
    PlacedSession s(g, place);
    auto step = s->compile({y}, {}, {x, scale});
    CHECK(first(step.run({Tensor::scalar(2.0f), Tensor::scalar(3.0f)})) == 3 * 144 + 12);
    CHECK(first(step.run({Tensor::scalar(-2.0f), Tensor::scalar(3.0f)})) == 3 * 144 + 24);
  }
}

TEST_CASE("variables made in a body belong to the graph") {
  Graph g;
  Output p = flag(g);
  Variable v;
  auto scope = g.scope("net");
  auto inside = scope.enter();
  Output y = cond(
      p,
      [&] {
        auto deeper = g.with_scope("expert");
        v = variable(g, "v", constant(g, 2.0f) * constant(g, 3.0f));
        return v * 2.0f;
      },
      [&] { return constant(g, 0.0f); });
  CHECK(v.name() == "net/expert/v");
  CHECK(trainable_variables(g).size() == 1);
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({y}, {}, {p});
  CHECK(first(step.run({yes()})) == 12);
  CHECK(first(step.run({no()})) == 0);
}

TEST_CASE("a body that throws leaves the graph as it was, its variables too") {
  Graph g;
  Output p = flag(g);
  const std::size_t nodes = g.def().nodes.size();
  auto failing = [&]() -> Output {
    variable(g, "v", Tensor::scalar(1.0f));
    return constant(g, 1.0f) + constant(g, 1);
  };
  CHECK_THROWS_AS(cond(
                      p, [&] { return constant(g, 1.0f); }, failing),
                  Error);
  CHECK(g.def().nodes.size() == nodes);
  CHECK(g.def().functions.empty());
  CHECK(g.initializers().empty());
  CHECK(variable(g, "v", Tensor::scalar(1.0f)).name() == "v");
}

TEST_CASE("a branch that is refused inside a body leaves that body as it was, too") {
  Graph g;
  Output p = flag(g), x = number(g);
  Output y = cond(
      p,
      [&] {
        const std::size_t nodes = g.def().nodes.size(), functions = g.def().functions.size();
        const std::size_t mine = g.innermost().def().nodes.size();
        CHECK_THROWS_AS(cond(
                            p,
                            [&] {
                              variable(g, "v", Tensor::scalar(1.0f));
                              return x;
                            },
                            [&] { return constant(g, 1); }),
                        Error);
        CHECK(g.def().nodes.size() == nodes);
        CHECK(g.def().functions.size() == functions);
        CHECK(g.innermost().def().nodes.size() == mine);
        CHECK(g.initializers().empty());
        return x * 2.0f;
      },
      [&] { return x; });
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {p, x});
  CHECK(first(step.run({yes(), Tensor::scalar(3.0f)})) == 6);
}

TEST_CASE("functions that come later travel to processes that have the graph already") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = number(g);
    auto twice = [&](Function&, Output k) { return node(g, place.second, "Add", {k, k}).output(); };
    Function f = g.function("f", {f32_scalar}, {f32_scalar}, twice);
    Output y = f(x);
    PlacedSession s(g, place);
    CHECK(first(s->run({y}, {}, {{x, Tensor::scalar(2.0f)}})) == 4);
    Function h =
        g.function("h", {f32_scalar}, {f32_scalar}, [&](Function&, Output k) { return f(f(k)); });
    g.function("never_called", {f32_scalar}, {f32_scalar}, twice);
    Output z = h(y);
    CHECK(first(s->run({z}, {}, {{x, Tensor::scalar(2.0f)}})) == 16);
    Output u = f(h(y));
    CHECK(first(s->run({u}, {}, {{x, Tensor::scalar(1.0f)}})) == 16);
  }
}

TEST_CASE("random numbers in two calls of a function differ, and are the same in every placement") {
  std::vector<float> seen;
  for (const Place& place : kPlaces) {
    Graph g(5);
    Function f = g.function("f", {}, {f32_scalar}, [&](Function&) {
      auto there = g.with_device(place.second);
      return random_uniform(g, PartialShape::scalar());
    });
    Output a = f.call({})[0], b = f.call({})[0];
    PlacedSession s(g, place);
    auto drawn = s->run({a, b});
    CHECK(drawn[0].item<float>() != drawn[1].item<float>());
    seen.push_back(drawn[0].item<float>());
  }
  CHECK(seen[0] == seen[1]);
}

TEST_CASE("Switch and Merge of the client's own run as they are, and take a call with them") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g), x = number(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(0.0f));
    Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {x, p}});
    Function f = g.function("f", {f32_scalar}, {f32_scalar}, [&](Function&, Output k) {
      assign_add(v, constant(g, 1.0f));
      return -k;
    });
    Output y =
        g.add(NodeSpec{.op = "Merge", .inputs = {sides.output(0), f(sides.output(1))}}).output();
    Ran r(g, place);
    auto step = r.s->compile({y}, {}, {p, x});
    CHECK(first(step.run({no(), Tensor::scalar(3.0f)})) == 3);
    CHECK(r.value(v) == 0);
    CHECK(first(step.run({yes(), Tensor::scalar(3.0f)})) == -3);
    CHECK(r.value(v) == 1);
  }
}

TEST_CASE("what comes after a call on one side of a client's Switch dies with that side") {
  Graph g;
  Output p = flag(g), x = number(g);
  Variable v = variable(g, "v", Tensor::scalar(0.0f)), w = variable(g, "w", Tensor::scalar(0.0f));
  Function f = g.function("f", {f32_scalar}, {f32_scalar}, [&](Function&, Output k) {
    assign_add(v, constant(g, 1.0f));
    return -k;
  });
  Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {x, p}});
  const Output passed = sides.output(1) * 2.0f;
  std::vector<Op> calls{f.call_op({sides.output(1)})};
  {
    auto behind = g.with_control({passed});
    calls.push_back(f.call_op({x}));
  }
  std::vector<Op> after;
  for (const Op& call : calls)
    after.push_back(g.add(
        NodeSpec{.op = "AssignAdd", .inputs = {w.handle(), constant(g, 1.0f)}, .control = {call}}));
  Ran r(g, kPlaces[0]);
  for (const Op& one : after) {
    auto step = r.s->compile({}, {one}, {p, x});
    const float before = r.value(w);
    step.run({no(), Tensor::scalar(3.0f)});
    CHECK(r.value(v) == before);
    CHECK(r.value(w) == before);
    step.run({yes(), Tensor::scalar(3.0f)});
    CHECK(r.value(v) == before + 1);
    CHECK(r.value(w) == before + 1);
  }
}

TEST_CASE("a call behind a Merge on one side of a client's Switch dies with that side") {
  Graph g;
  Output p = flag(g), q = placeholder<bool>(g, PartialShape::scalar(), "q"), x = number(g);
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Function f = g.function("f", {f32_scalar}, {f32_scalar}, [&](Function&, Output k) {
    assign_add(v, constant(g, 1.0f));
    return -k;
  });
  Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {x, p}});
  Op other = g.add(NodeSpec{.op = "Switch", .inputs = {x * 2.0f, p}});
  Op inner = g.add(NodeSpec{.op = "Switch", .inputs = {sides.output(1), q}});
  Op beside = g.add(NodeSpec{.op = "Switch", .inputs = {other.output(1), q}});
  Output both =
      g.add(NodeSpec{.op = "Merge", .inputs = {inner.output(0), beside.output(1)}}).output();
  Output y = g.add(NodeSpec{.op = "Merge", .inputs = {sides.output(0), f(both)}}).output();
  Ran r(g, kPlaces[0]);
  auto step = r.s->compile({y}, {}, {p, q, x});
  for (bool second : {false, true}) {
    CAPTURE(second);
    const Tensor three = Tensor::scalar(3.0f), chosen = Tensor::scalar(second);
    const float before = r.value(v);
    CHECK(first(step.run({no(), chosen, three})) == 3);
    CHECK(r.value(v) == before);
    CHECK(first(step.run({yes(), chosen, three})) == (second ? -6 : -3));
    CHECK(r.value(v) == before + 1);
  }
}

TEST_CASE("what a body made is no fetch, target or feed, and the message says where it is") {
  Graph g;
  Output p = flag(g), x = number(g), kept;
  Output y = cond(
      p, [&] { return kept = x * x; }, [&] { return x; });
  Session s(g, one_thread());
  for (const Status& refused :
       {s.try_compile({kept}, {}, {p, x}).status(), s.try_compile({y}, {kept}, {p, x}).status(),
        s.try_compile({y}, {}, {p, x, kept}).status()}) {
    CHECK(refused.code() == Code::invalid_argument);
    CHECK_MESSAGE(refused.text().find("body of function 'cond/then' (") != std::string::npos,
                  refused.text());
  }
  CHECK_THROWS_AS(cond(
                      p, [&] { return number(g, "inside"); }, [&] { return x; }),
                  Error);
}

TEST_CASE("elements of a dataset are refused in a branch") {
  Graph g;
  Output p = flag(g);
  Output y = cond(
      p, [&] { return cast<float>(data::digits(8).batch(2).outputs(g)[1]); },
      [&] {
        return constant(g, Tensor::of<float>({2}, {0, 0}));
      });
  Session s(g, one_thread());
  const Status refused = s.try_compile({y}, {}, {p}).status();
  CHECK(refused.code() == Code::unimplemented);
  CHECK_MESSAGE(refused.text().find("dataset") != std::string::npos, refused.text());
}

TEST_CASE("a body comes after what its nodes are told to come after, outside of it too") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output p = flag(g);
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));
    Op written = assign(v, constant(g, 8.0f));
    Output y = cond(
        p, [&] { return read(v, {written}); }, [&] { return constant(g, 0.0f); });
    Function f = g.function("f", {}, {f32_scalar}, [&](Function&) { return read(v, {written}); });
    Output z;
    {
      auto later = g.with_control({written});
      z = cond(
          p, [&] { return read(v); }, [&] { return constant(g, 0.0f); });
    }
    Ran r(g, place);
    auto step = r.s->compile({y, z, f.call({})[0]}, {}, {p});
    auto seen = step.run({yes()});
    CHECK(seen[0].item<float>() == 8);
    CHECK(seen[1].item<float>() == 8);
    CHECK(seen[2].item<float>() == 8);
    CHECK(first(step.run({no()})) == 0);
  }
}

TEST_CASE("a failure in a branch names the node, the call site and the line in the body") {
  Graph g;
  Output p = flag(g), d = placeholder<std::int32_t>(g, PartialShape::scalar());
  Output y = cond(
      p, [&] { return 7 / d; }, [&] { return d; });
  const Site here = Site::here();
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {p, d});
  const Status failed = step.try_run({yes(), Tensor::scalar(0)}).status();
  CHECK(!failed.ok());
  CHECK_MESSAGE(failed.text().find("'cond/then/Div'") != std::string::npos, failed.text());
  CHECK_MESSAGE(
      failed.text().find("control_test.cpp:" + std::to_string(here.line - 1)) != std::string::npos,
      failed.text());
}
