// Gradients through loops, of first and second order, against differences.
#include <doctest/doctest.h>

#include <cmath>

#include "ops/optim/optim.hpp"
#include "tests/actors/support/gradient_check.hpp"
#include "tests/actors/support/printed.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// By op, how many nodes the step has after a stage of compiling.
std::size_t count_of(const Graph& g, const std::string& op) {
  std::size_t n = 0;
  for (const NodeDef& node : g.def().nodes) n += node.op == op;
  return n;
}

}  // namespace

TEST_CASE("gradients of what a loop repeats, twice") {
  for (const Place& place : kPlaces)
    check_gradients(
        [](Graph& g, Output n, Output x) {
          return loop_of(g, n, x, [](Output, Output v) { return sin(v) * 1.25 + v * v * 0.1; });
        },
        {0, 1, 2, 5}, place);
}

TEST_CASE("gradients of what a loop takes from around it, twice") {
  check_gradients([](Graph& g, Output n, Output x) {
    return loop_of(g, n, x * 0.5, [&](Output, Output v) { return tanh(v * x) + x; });
  });
}

TEST_CASE("variables that hand values on to each other have the gradients of what they hand on") {
  check_gradients([](Graph& g, Output n, Output x) {
    Output y = std::get<1>(while_loop(
        std::tuple{constant(g, 0), x, x * x, sin(x)},
        [&](Output i, Output, Output, Output) { return i < n; },
        [&](Output i, Output, Output b, Output c) {
          return std::tuple{i + 1, b, c, c};
        }));
    return y * y;
  });
}

TEST_CASE("adding a value n times saves nothing, and its gradient is n") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Output y = loop_of(g, n, x * 0.0, [&](Output, Output v) { return v + x; });
  Output dx = gradient_of(y, x);
  CHECK(count_of(g, "SavedList") == 0);
  Session s(g, one_thread());
  auto step = s.compile({dx}, {}, {n, x});
  for (std::int32_t times : {0, 1, 7, 1000})
    CHECK(step.run({Tensor::scalar(times), Tensor::scalar(3.0)})[0].item<double>() == times);
}

TEST_CASE("gradients through branches in a loop, twice") {
  check_gradients([](Graph& g, Output n, Output x) {
    return loop_of(g, n, x, [&](Output i, Output v) {
      return cond(
          mod(i, constant(g, 2)) == 0, [&] { return exp(v * 0.3) * x; },
          [&] {
            Output w = sin(v) * v;
            return cond(
                sum(w) > constant(g, 0.0), [&] { return w * w; }, [&] { return w * x; });
          });
    });
  });
}

TEST_CASE("a loop that knows shapes from constants around it has gradients, twice") {
  for (LoopSave save : {LoopSave::values, LoopSave::variables})
    check_gradients([&](Graph& g, Output n, Output x) {
      Output dims = constant(g, std::vector<std::int64_t>{3, 1});
      return loop_of(g, n, x, [&](Output, Output v) { return sum(tanh(reshape(v, dims)), 1); },
                     {.save = save});
    });
}

TEST_CASE("gradients through calls in a loop, twice") {
  check_gradients([](Graph& g, Output n, Output x) {
    const ValueType three{DType::f64, {3}};
    Function f =
        g.function("f", {three}, {three}, [](Function&, Output k) { return k * k * 0.5 + sin(k); });
    return loop_of(g, n, x, [&](Output, Output v) { return f(v) * 0.5 + f(x); });
  });
}

TEST_CASE("gradients through loops in a loop, twice") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        return loop_of(g, n, x, [&](Output i, Output v) {
          Output w = sin(v);
          return loop_of(g, i, w, [&](Output, Output u) { return tanh(u * w) + x * u * 0.1; });
        });
      },
      {0, 1, 3});
}

TEST_CASE("gradients through a branch in a loop in a loop, twice") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        return loop_of(g, n, x, [&](Output i, Output v) {
          return loop_of(g, i, v, [&](Output j, Output u) {
            return cond(
                mod(i + j, constant(g, 2)) == 0,
                [&] {
                  Output s = sin(u);
                  return s * s + v;
                },
                [&] { return u * x; });
          });
        });
      },
      {0, 1, 3});
}

TEST_CASE("gradients through a loop in a branch in a loop, twice") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        return loop_of(g, n, x, [&](Output i, Output v) {
          return cond(
              mod(i, constant(g, 2)) == 1,
              [&] {
                return loop_of(g, i, v, [&](Output, Output u) { return sin(u) * x + v * 0.5; });
              },
              [&] { return v * v; });
        });
      },
      {0, 1, 3, 4});
}

TEST_CASE("gradients through a loop in a branch, twice") {
  for (std::int32_t least : {0, 3})
    check_gradients([least](Graph& g, Output n, Output x) {
      return cond(
          n > least,
          [&] { return loop_of(g, n, x, [&](Output, Output v) { return sin(v) + v * x * 0.2; }); },
          [&] { return x * x * x; });
    });
}

TEST_CASE("gradients through a function with a loop, called in a loop and beside it, twice") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        const ValueType three{DType::f64, {3}};
        const ValueType times{DType::i32, PartialShape::scalar()};
        Function f = function(g, "f", {times, three}, {three}, [&](Function&, Output k, Output v) {
          return loop_of(g, k, v, [&](Output, Output u) { return sin(u) + u * v * 0.2; });
        });
        return loop_of(g, n, x, [&](Output i, Output v) { return f(i, v) * 0.8 + f(n, x) * 0.1; });
      },
      {0, 1, 3});
}

TEST_CASE("a loop that goes down gradients has gradients itself, twice") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        return loop_of(g, n, x, [&](Output, Output v) {
          Output y = sum(loop_of(g, n, v, [&](Output, Output u) { return sin(u) * x + u; }));
          return v - gradient_of(y, v) * 0.05;
        });
      },
      {0, 1, 2});
}

TEST_CASE("gradients through cases and calls of what is in a body, with several results") {
  check_gradients([](Graph& g, Output n, Output x) {
    auto [i, a, b] = while_loop(
        std::tuple{constant(g, 0), x, x * 0.5}, [&](Output i, Output, Output) { return i < n; },
        [&](Output i, Output a, Output b) {
          Op made = switch_case_op(mod(i, constant(g, 3)),
                                   {[&] {
                                      return std::vector<Output>{sin(a), b * b};
                                    },
                                    [&] {
                                      return std::vector<Output>{a * b, a};
                                    },
                                    [&] {
                                      return std::vector<Output>{b, exp(a * 0.1) * x};
                                    }});
          return std::tuple{i + 1, made.output(0), made.output(1)};
        });
    return a * b + b;
  });
}

TEST_CASE("gradients of three loops in each other") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        return loop_of(g, n, x, [&](Output, Output a) {
          return loop_of(g, n, a, [&](Output, Output b) {
            return loop_of(g, n, b * 0.7, [&](Output, Output c) { return sin(c) + a * b * 0.1; });
          });
        });
      },
      {0, 1, 2});
}

TEST_CASE("rows of a value around the loop have their gradients, twice") {
  check_gradients([](Graph& g, Output n, Output x) {
    Output rows = expand_dims(x, 1) * constant(g, Tensor::of<double>({1, 2}, {1.0, -2.0}));
    Output total =
        loop_of(g, n, constant(g, Tensor::of<double>({2}, {0.5, 1})), [&](Output i, Output v) {
          Output at = mod(i, constant(g, 3));
          Output row = squeeze(slice(rows, pack({at, constant(g, 0)}),
                                     constant(g, Tensor::of<std::int32_t>({2}, {1, 2}))));
          return v * 0.5 + tanh(gather(rows, at)) * v + row * row;
        });
    return total;
  });
}

TEST_CASE("gradients that are asked for after a step was run leave it as it was") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Output y = loop_of(g, n, x, [](Output, Output v) { return v * v; });
  Session s(g, one_thread());
  auto before = s.compile({y}, {}, {n, x});
  const Tensor three = Tensor::scalar(std::int32_t{3});
  CHECK(before.run({three, Tensor::scalar(2.0)})[0].item<double>() == 256);
  Output dx = gradient_of(y, x);
  auto after = s.compile({y, dx}, {}, {n, x});
  auto got = after.run({three, Tensor::scalar(2.0)});
  CHECK(got[0].item<double>() == 256);
  CHECK(got[1].item<double>() == 1024);
  CHECK(before.run({three, Tensor::scalar(1.0)})[0].item<double>() == 1);
}

TEST_CASE("what a loop drew and printed is not done again for its gradient") {
  Printed printed;
  Graph g(5);
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Output y = loop_of(g, n, x, [](Output, Output v) {
    return print(random_uniform_like(v), {.message = "drew "}) * v;
  });
  Output dx = gradient_of(y, x);
  Session s(g, one_thread());
  auto both = s.compile({y, dx}, {}, {n, x}), slope = s.compile({dx}, {}, {n, x});
  int lines = 0;
  for (std::int32_t times : {4, 0, 1, 7}) {
    CAPTURE(times);
    auto got = both.run({Tensor::scalar(times), Tensor::scalar(2.0)});
    CHECK(got[0].item<double>() == doctest::Approx(2 * got[1].item<double>()));
    CHECK(printed.count("drew ") == (lines += times));
    slope.run({Tensor::scalar(times), Tensor::scalar(2.0)});
    CHECK(printed.count("drew ") == (lines += times));
  }
}

TEST_CASE("an optimizer trains variables that a loop reads") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
    Variable w = variable_on(g, place.second, "w", Tensor::scalar(0.5));
    // w^4 + ... towards 2
    Output y = loop_of(g, n, constant(g, 1.0), [&](Output, Output v) { return v * read(w) + 0.1; });
    Output loss = (y - 2.0) * (y - 2.0);
    Op train = optim::Sgd{.lr = 0.02}.minimize(loss, {w});
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({loss}, {train}, {n});
    double last = 0;
    for (int i = 0; i < 200; ++i)
      last = step.run({Tensor::scalar(std::int32_t{4})})[0].item<double>();
    CHECK(last < 1e-3);
  }
}

TEST_CASE("replicas train through loops of their own data, each as often as it likes") {
  auto trained = [](int replicas, int batch) {
    Graph g(3);
    auto batches = data::digits(64).batch(batch).repeat().outputs(g);
    Variable w = variable(g, "w", Tensor::scalar(0.5f));
    Output n = cast<std::int32_t>(constant(g, 3)) + cast<std::int32_t>(min(batches[1])) * 0;
    Output x = mean(batches[0]);
    Output y = std::get<1>(while_loop(
        std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < n; },
        [&](Output i, Output v) {
          return std::tuple{i + 1, v * w.value() + x};
        }));
    Op train = optim::Sgd{.lr = 0.1}.minimize((y - 1.0f) * (y - 1.0f), {w});
    Cluster cluster = one_thread();
    cluster.replicas = replicas;
    Session s(g, cluster);
    s.init();
    auto step = s.compile({}, {train});
    for (int i = 0; i < 4; ++i) step.run();
    return s.run({w})[0].item<float>();
  };
  CHECK(trained(1, 8) != 0.5f);
  const float two = trained(2, 8);
  CHECK(two != 0.5f);
  CHECK(std::isfinite(two));
}

TEST_CASE("a Switch of the client's own in a loop has no gradient, and says so") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Output y = loop_of(g, n, x, [&](Output i, Output v) {
    Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {v, i > 2}, .site = Site::here()});
    Output a = sides.output(0) * sides.output(0), b = sides.output(1) * 2.0;
    return g.add(NodeSpec{.op = "Merge", .inputs = {a, b}}).output();
  });
  const Status refused = gradients(std::vector{y}, std::vector{x}).status();
  CHECK(refused.code() == Code::unimplemented);
  CHECK_MESSAGE(refused.text().find("loop_gradients_test.cpp") != std::string::npos,
                refused.text());
}

TEST_CASE("gradients of lists that a loop makes and takes, twice") {
  check_gradients([](Graph& g, Output n, Output x) {
    Output list = list_push(list_empty(g, DType::f64, {.shape = {3}}), x);
    Output all = std::get<1>(while_loop(
        std::tuple{constant(g, 0), list}, [&](Output i, Output) { return i < n; },
        [&](Output i, Output l) {
          Output last = list_get(l, i, DType::f64, {.shape = {3}});
          return std::tuple{i + 1, list_push(l, sin(last) * x)};
        }));
    Output rows = list_stack(all, DType::f64);
    return rows * rows;
  });
}

TEST_CASE("a shape may change from iteration to iteration, and so do gradients") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        return std::get<1>(while_loop(
            std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < n; },
            [&](Output i, Output v) {
              return std::tuple{i + 1, concat({sin(v), v * v})};
            },
            {.shapes = {{}, {-1}}}));
      },
      {0, 1, 3});
}

TEST_CASE("the gradient of an outside value of few bits counts every iteration of a loop") {
  for (const auto& [dtype, trips] : {std::pair(DType::bf16, 1000), std::pair(DType::f16, 5000)}) {
    Graph g;
    const Variable w = variable(g, "w", 1.f);
    const Variable table = variable(g, "table", zeros(g, {3, 2}, DType::f32));
    const Output narrow = cast(w, dtype), rows = cast(table, dtype);
    const Output one = constant(g, std::int64_t{1});
    const Output xs = cast(ones(g, {trips}, DType::f32), dtype);
    const Output y = fold(xs, constant(g, 0.f), [&](Output h, Output x) {
      return h + cast<float>(narrow * x) + sum(cast<float>(gather(rows, one)));
    });
    const auto dx = gradients(y, {w.value(), table.value()});
    Session s(g, one_thread());
    s.init();
    const std::vector<Tensor> got = s.run({dx[0], dx[1]});
    const float n = float(trips);
    CHECK(got[0].item<float>() == n);
    CHECK(Tensor::same(got[1], Tensor::of<float>({3, 2}, {0, 0, n, n, 0, 0})));
  }
}
