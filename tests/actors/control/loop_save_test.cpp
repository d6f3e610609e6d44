// Loops that keep their variables alone for their gradients, and compute other values again.
#include <doctest/doctest.h>

#include <map>

#include "tests/actors/support/gradient_check.hpp"
#include "tests/actors/support/printed.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Body = std::function<Output(Output i, Output v)>;
using MakeLoop = std::function<Output(Graph&, Output n, Output x, const LoopOptions&)>;

Output times(Graph& g, Output n, Output first, const LoopOptions& options, const Body& body) {
  return loop_of(g, n, first, body, options);
}

std::size_t saved_lists(const Graph& g) {
  std::size_t n = 0;
  for (const NodeDef& node : g.def().nodes) n += node.op == "SavedList";
  return n;
}

// Gradients of gradients add up the same terms, but not in the same order.
template <class T>
void check_near(const Tensor& got, const Tensor& want) {
  REQUIRE(got.elements() == want.elements());
  for (std::int64_t i = 0; i < got.elements(); ++i)
    CHECK(got.data<T>()[i] ==
          doctest::Approx(want.data<T>()[i]).epsilon(sizeof(T) == 8 ? 1e-11 : 1e-5));
}

// y, dy/dx and the product of the Hessian with a vector, for several numbers of iterations.
std::vector<Tensor> results(const MakeLoop& make, LoopSave save, const Place& place = kPlaces[0]) {
  Graph g(3);
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<double>(g, {3}, "x");
  Output y = sum(make(g, n, x, {.save = save}));
  Output dx = gradient_of(y, x);
  Output ddx = gradient_of(sum(dx * constant(g, Tensor::of<double>({3}, {0.5, -1.5, 2.0}))), x);
  PlacedSession s(g, place);
  auto step = s->compile({y, dx, ddx}, {}, {n, x});
  std::vector<Tensor> all;
  for (std::int32_t trips : {0, 1, 2, 5})
    for (Tensor& t : step.run({Tensor::scalar(trips), Tensor::of<double>({3}, {0.3, -0.7, 1.9})}))
      all.push_back(std::move(t));
  return all;
}

void compare(const char* name, const MakeLoop& make, const Place& place = kPlaces[0]) {
  INFO(name);
  const std::vector<Tensor> want = results(make, LoopSave::values, place);
  const std::vector<Tensor> got = results(make, LoopSave::variables, place);
  REQUIRE(want.size() == 12);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    if (i % 3 == 2)
      check_near<double>(got[i], want[i]);
    else
      CHECK_MESSAGE(Tensor::same(got[i], want[i]), got[i].text(), " is not ", want[i].text());
  }
}

}  // namespace

TEST_CASE("a loop that computes its values again has the gradients of one that saves them, twice") {
  for (const Place& place : kPlaces)
    compare(
        "plain",
        [](Graph& g, Output n, Output x, const LoopOptions& options) {
          return times(g, n, x, options,
                       [&](Output, Output v) { return sin(v) * tanh(v * x) + v * v * 0.1; });
        },
        place);
  compare("variables that hand on to each other", [](Graph& g, Output n, Output x,
                                                     const LoopOptions& options) {
    auto [i, a, b] = while_loop(
        std::tuple{constant(g, 0), x, x * x}, [&](Output i, Output, Output) { return i < n; },
        [&](Output i, Output a, Output b) {
          return std::tuple{i + 1, sin(b) * a, a * 0.5 + exp(b * 0.1)};
        },
        options);
    return a * b;
  });
  compare("branches", [](Graph& g, Output n, Output x, const LoopOptions& options) {
    return times(g, n, x, options, [&](Output i, Output v) {
      return cond(
          mod(i, constant(g, 2)) == 0, [&] { return exp(v * 0.3) * x; },
          [&] {
            Output w = sin(v) * v;
            return cond(
                sum(w) > constant(g, 0.0), [&] { return w * w; }, [&] { return w * x; });
          });
    });
  });
  compare("a branch that draws", [](Graph& g, Output n, Output x, const LoopOptions& options) {
    return times(g, n, x, options, [&](Output i, Output v) {
      Output w = tanh(v) * v;
      return cond(
          mod(i, constant(g, 2)) == 0, [&] { return random_uniform_like(w) * sin(w) * w; },
          [&] { return w * x; });
    });
  });
  compare("calls", [](Graph& g, Output n, Output x, const LoopOptions& options) {
    const ValueType three{DType::f64, {3}};
    Function f =
        g.function("f", {three}, {three}, [](Function&, Output k) { return k * k * 0.5 + sin(k); });
    return times(g, n, x, options, [&](Output, Output v) { return f(sin(v)) * 0.5 + f(x); });
  });
  compare("loops in it", [](Graph& g, Output n, Output x, const LoopOptions& options) {
    return times(g, n, x, options, [&](Output i, Output v) {
      Output w = sin(v);
      return times(g, i, w, options,
                   [&](Output, Output u) { return tanh(u * w) * 0.7 + x * u * 0.1; });
    });
  });
  compare("a loop in it that saves", [](Graph& g, Output n, Output x, const LoopOptions& options) {
    return times(g, n, x, options, [&](Output i, Output v) {
      Output w = sin(v);
      return times(g, i, w, {}, [&](Output, Output u) { return tanh(u * w) * 0.7 + x; });
    });
  });
  compare("in a loop that saves", [](Graph& g, Output n, Output x, const LoopOptions& options) {
    return times(g, n, x, {}, [&](Output i, Output v) {
      return times(g, i, sin(v), options, [&](Output, Output u) { return tanh(u * v) + x * u; });
    });
  });
  compare("a loop that goes down gradients",
          [](Graph& g, Output n, Output x, const LoopOptions& options) {
            return times(g, mod(n, constant(g, 3)), x, options, [&](Output, Output v) {
              Output y = sum(times(g, n, v, options, [&](Output, Output u) { return sin(u) * x; }));
              return v - gradient_of(y, v) * 0.05;
            });
          });
  compare("rows", [](Graph& g, Output n, Output x, const LoopOptions& options) {
    Output rows = expand_dims(x, 1) * constant(g, Tensor::of<double>({1, 2}, {1.0, -2.0}));
    return times(g, n, constant(g, Tensor::of<double>({2}, {0.5, 1})), options,
                 [&](Output i, Output v) {
                   return v * 0.5 + tanh(gather(rows, mod(i, constant(g, 3)))) * v;
                 });
  });
  compare("scan", [](Graph&, Output, Output x, const LoopOptions& options) {
    auto [last, all] = scan(
        x, sum(x),
        [](Output h, Output x) {
          Output next = tanh(h * x) + sin(h);
          return std::pair{next, next * next * x};
        },
        options);
    return all * last;
  });
}

TEST_CASE("a loop that computes its values again has its effects once") {
  auto run = [](LoopSave save) {
    Printed printed;
    Graph g(5);
    Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
    Output x = placeholder<float>(g, PartialShape::scalar(), "x");
    Variable v = variable(g, "v", Tensor::scalar(0.5f));
    Variable reads = variable(g, "reads", Tensor::scalar(1.25f));
    Output from = queue_on(g, ""), to = queue_on(g, "");
    Output fed = placeholder<float>(g, PartialShape::scalar(), "fed");
    Op put = enqueue(from, {fed});
    Output left = queue_size(from), there = queue_size(to);
    Output y = times(g, n, x, {.save = save}, [&](Output, Output a) {
      Output taken = take_from(from);
      Output drawn = random_uniform_like(a);
      Op more = assign_add(v, drawn + taken);
      Output told = print(sin(a) * read(v, {more}), {.message = "effects_once "});
      enqueue(to, {told});
      return tanh(told * drawn) * a + sin(taken * a) * read(reads);
    });
    Output dx = gradient_of(y, x);
    Output ddx = gradient_of(dx, x);
    Session s(g, one_thread());
    s.init();
    for (float f : {0.25f, -1.5f, 2.0f, 0.75f, 3.0f}) s.run({}, {put}, {{fed, Tensor::scalar(f)}});
    auto step = s.compile({y, dx, ddx}, {}, {n, x});
    std::vector<Tensor> all = step.run({Tensor::scalar(std::int32_t{4}), Tensor::scalar(0.8f)});
    CHECK(printed.count("effects_once ") == 4);
    all.push_back(s.run({left})[0]);
    all.push_back(s.run({there})[0]);
    for (int k = 0; k < 4; ++k) all.push_back(s.run({take_from(to)})[0]);
    for (auto& [name, value] : value_or_throw(s.try_variables())) all.push_back(value);
    return all;
  };
  const std::vector<Tensor> want = run(LoopSave::values), got = run(LoopSave::variables);
  REQUIRE(want.size() == 3 + 2 + 4 + 2);
  REQUIRE(got.size() == want.size());
  check_near<float>(got[2], want[2]);
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    if (i != 2)
      CHECK_MESSAGE(Tensor::same(got[i], want[i]), got[i].text(), " is not ", want[i].text());
  }
  CHECK(got[3].item<std::int64_t>() == 1);  // of five
  CHECK(got[4].item<std::int64_t>() == 4);
}

TEST_CASE("what draws, prints, reads or asks is in a loop's gradient nowhere") {
  Graph g(5);
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<float>(g, PartialShape::scalar(), "x");
  Variable v = variable(g, "v", Tensor::scalar(0.5f));
  Output from = queue_on(g, "");
  Output y = times(g, n, x, {.save = LoopSave::variables}, [&](Output, Output a) {
    Output drawn = random_uniform_like(a) * take_from(from);
    Op more = assign_add(v, drawn);
    return print(tanh(sin(a) * drawn)) * read(v, {more});
  });
  const std::size_t functions = g.def().functions.size();
  gradient_of(gradient_of(y, x), x);
  REQUIRE(g.def().functions.size() > functions);
  std::map<std::string, int> ops;
  for (std::size_t f = functions; f < g.def().functions.size(); ++f)
    for (const NodeDef& node : g.def().functions[f].nodes) ++ops[node.op];
  for (const char* op :
       {"RandomUniform", "QueueDequeue", "Dequeue", "AssignAdd", "Print", "ReadVariable"})
    CHECK_MESSAGE(ops[op] == 0, op);
  CHECK(ops["Sin"] > 0);
}

TEST_CASE("a loop that computes its values again holds its variables alone") {
  auto peak = [](LoopSave save) {
    Graph g;
    Output x = placeholder<float>(g, {64 * 1024}, "x");  // 256 KiB
    Output y = sum(times(g, constant(g, 20), x, {.save = save}, [&](Output, Output v) {
      Output w = v;
      for (int k = 0; k < 6; ++k) w = tanh(w * x);
      return w;
    }));
    Output dx = gradient_of(y, x);
    CHECK(saved_lists(g) == (save == LoopSave::values ? 7 : 1));
    Session s(g, one_thread());
    auto step = s.compile({sum(dx)}, {}, {x});
    const Tensor zeros = value_or_throw(Tensor::zeros(DType::f32, {64 * 1024}));
    s.memory(true);
    step.run({zeros});
    return s.memory()[0].peak;
  };
  constexpr std::uint64_t kValue = 256 << 10;
  const std::uint64_t all = peak(LoopSave::values), few = peak(LoopSave::variables);
  CHECK(all > 6 * 20 * kValue);
  CHECK(few < (20 + 20) * kValue);
}
