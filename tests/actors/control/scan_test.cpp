// scan, map, fold and TensorArray: what they compute, and their gradients.
#include <doctest/doctest.h>

#include "core/list.hpp"
#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/contains.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::vector<double> values(const Tensor& t) {
  return {t.data<double>(), t.data<double>() + t.elements()};
}
using Numbers = std::vector<double>;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.status().text();
  }
  return "";
}

Tensor column(std::vector<double> x) { return Tensor::of<double>({std::int64_t(x.size())}, x); }

// dy/dx of y = f(x), both vectors' sums, against differences.
void check_gradient(const std::function<Output(Graph&, Output x)>& make) {
  Graph g;
  Output x = placeholder<double>(g, {3, 2}, "x");
  Output y = sum(make(g, x));
  Output dx = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
  REQUIRE(!dx.empty());
  Session s(g, one_thread());
  auto step = s.compile({y, dx}, {}, {x});
  const std::vector<double> at{0.3, -0.7, 1.1, 0.4, -0.2, 0.9};
  auto run = [&](std::size_t i, double move) {
    std::vector<double> moved = at;
    moved[i] += move;
    return step.run({Tensor::of<double>({3, 2}, moved)});
  };
  const Tensor got = run(0, 0)[1];
  for (std::size_t i = 0; i < at.size(); ++i) {
    CAPTURE(i);
    const double slope = (run(i, 1e-5)[0].item<double>() - run(i, -1e-5)[0].item<double>()) / 2e-5;
    CHECK(got.data<double>()[i] == doctest::Approx(slope).epsilon(1e-6).scale(1));
  }
}

}  // namespace

TEST_CASE("scan returns the last state and what each step gave") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output xs = placeholder<double>(g, {-1}, "xs");
    auto [last, sums] = scan(xs, constant(g, 1.0), [](Output h, Output x) {
      return std::pair{h + x, h * x};
    });
    CHECK(sums.shape() == PartialShape{-1});
    PlacedSession s(g, place);
    auto step = s->compile({last, sums}, {}, {xs});
    auto out = step.run({column({2, 3, 4})});
    CHECK(out[0].item<double>() == 10);
    CHECK(values(out[1]) == Numbers{2, 9, 24});
    out = step.run({column({})});
    CHECK(out[0].item<double>() == 1);
    CHECK(out[1].shape() == Shape{0});
  }
}

TEST_CASE("scan goes over several tensors, with a state of several values") {
  Graph g;
  Output a = constant(g, Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  Output b = constant(g, column({10, 20, 30}));
  auto [state, out] =
      scan(std::tuple{a, b},
           std::tuple{constant(g, Tensor::zeros(DType::f64, {2}).value()), constant(g, 0)},
           [](Output sum, Output n, Output row, Output k) {
             return std::pair{std::tuple{sum + row * k, n + 1}, std::tuple{sum, row}};
           });
  auto [sums, rows] = out;
  CHECK(sums.shape() == PartialShape{3, 2});
  Session s(g, one_thread());
  auto got = s.run({std::get<0>(state), std::get<1>(state), sums, rows});
  CHECK(values(got[0]) == Numbers{220, 280});
  CHECK(got[1].item<std::int32_t>() == 3);
  CHECK(values(got[2]) == Numbers{0, 0, 10, 20, 70, 100});
  CHECK(values(got[3]) == Numbers{1, 2, 3, 4, 5, 6});
}

TEST_CASE("map and fold") {
  Graph g;
  Output xs = constant(g, column({1, 2, 3}));
  Output squares = map(xs, [](Output v) { return v * v; });
  auto [plus, minus] = map(std::tuple{xs, squares}, [](Output a, Output b) {
    return std::tuple{a + b, cast<float>(a - b)};
  });
  Output total = fold(xs, constant(g, 0.0), [](Output sum, Output x) { return sum * 2.0 + x; });
  CHECK(squares.shape() == PartialShape{3});
  CHECK(minus.dtype() == DType::f32);
  Session s(g, one_thread());
  auto got = s.run({squares, plus, total});
  CHECK(values(got[0]) == Numbers{1, 4, 9});
  CHECK(values(got[1]) == Numbers{2, 6, 12});
  CHECK(got[2].item<double>() == 11);
}

TEST_CASE("gradients of scan, map and fold are differences") {
  check_gradient([](Graph& g, Output x) {
    Output w = sin(x[0]);
    auto [last, all] =
        scan(x, constant(g, Tensor::of<double>({2}, {0.5, 1.0})), [&](Output h, Output row) {
          Output next = tanh(h * w + row);
          return std::pair{next, next * row};
        });
    return all * expand_dims(last, 0);
  });
  check_gradient(
      [](Graph&, Output x) { return map(x, [&](Output row) { return sin(row) * x[1]; }); });
  check_gradient([](Graph& g, Output x) {
    return fold(std::tuple{x, x * x}, constant(g, Tensor::of<double>({2}, {1.0, 2.0})),
                [](Output h, Output a, Output b) { return h * a + b; });
  });
}

TEST_CASE("Hessian-vector products through an LSTM that is a scan") {
  check_gradient([](Graph& g, Output x) {
    auto part = [&](Output of, std::vector<std::int64_t> begin, std::vector<std::int64_t> size) {
      const Shape rank{std::int64_t(begin.size())};
      return slice(of, constant(g, Tensor::of<std::int64_t>(rank, begin)),
                   constant(g, Tensor::of<std::int64_t>(rank, size)));
    };
    const Output zero = constant(g, Tensor::of<double>({1, 2}, {0, 0}));
    // [input | state] to four gates of two units: 32 numbers of the 36.
    const Output numbers = concat({x, x * 0.5, sin(x), x * x, -x, x * 2.0}, {.axis = 0});
    const Output weights = reshape(part(reshape(numbers, {36}), {0}, {32}), {4, 8});
    auto [state, shown] = scan(x, std::tuple{zero, zero}, [&](Output h, Output c, Output row) {
      Output gates = mat_mul(concat({expand_dims(row, 0), h}, {.axis = 1}), weights);
      auto gate = [&](std::int64_t k) { return part(gates, {0, 2 * k}, {1, 2}); };
      Output next = sigmoid(gate(0)) * c + sigmoid(gate(1)) * tanh(gate(2));
      Output out = sigmoid(gate(3)) * tanh(next);
      return std::pair{std::tuple{out, next}, out};
    });
    Output loss = sum(shown * shown) + sum(std::get<1>(state));
    Output slope = value_or_throw(gradients(std::vector{loss}, std::vector{x}))[0];
    return slope * constant(g, Tensor::of<double>({3, 2}, {1, -2, 0.5, 3, -1, 2}));
  });
}

TEST_CASE("scan refuses tensors of different lengths") {
  Graph g;
  auto both = [&](Output a, Output b) {
    return map(std::tuple{a, b}, [](Output x, Output y) { return x + y; });
  };
  const std::string at_once = error_of([&] {
    both(constant(g, column({1, 2})), constant(g, column({1})));
  });
  CHECK_MESSAGE(contains(at_once, "has 1 slices, another tensor 2"), at_once);
  CHECK_MESSAGE(contains(at_once, "scan_test.cpp"), at_once);
  CHECK(contains(error_of([&] { map(constant(g, 1.0), [](Output x) { return x; }); }),
                 "which has no slices"));
  Output a = placeholder<double>(g, {-1}, "a"), b = placeholder<double>(g, {-1}, "b");
  Output y = both(a, b);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {a, b});
  CHECK(values(step.run({column({1, 2}), column({3, 4})})[0]) == Numbers{4, 6});
  const std::string later = step.try_run({column({1, 2}), column({1})}).status().text();
  CHECK_MESSAGE(contains(later, "different numbers of slices"), later);
}

TEST_CASE("a TensorArray is a variable of a loop, read and written by position") {
  Graph g;
  Output n = placeholder<std::int64_t>(g, PartialShape::scalar(), "n");
  TensorArray start(g, DType::f64, {.element = PartialShape::scalar()});
  start = start.push(constant(g, 1.0)).push(constant(g, 1.0));
  auto [i, fibonacci] = while_loop(
      std::tuple{constant(g, std::int64_t{2}), start}, [&](Output i, TensorArray) { return i < n; },
      [&](Output i, TensorArray a) {
        return std::tuple{i + 1, a.write(i, a.read(i - 1) + a.read(i - 2))};
      });
  Output all = fibonacci.stack();
  CHECK(all.shape() == PartialShape{-1});
  Output halves = fibonacci.write(constant(g, 0), constant(g, 0.5)).stack();
  Session s(g, one_thread());
  auto step = s.compile({all, fibonacci.size(), halves}, {}, {n});
  auto got = step.run({Tensor::scalar(std::int64_t{7})});
  CHECK(values(got[0]) == Numbers{1, 1, 2, 3, 5, 8, 13});
  CHECK(got[1].item<std::int64_t>() == 7);
  CHECK(values(got[2]) == Numbers{0.5, 1, 2, 3, 5, 8, 13});
}

TEST_CASE("a list is where the loop is that makes it, and so are those who take it") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = placeholder<double>(g, {3}, "x");
    auto [last, all] = scan(x, constant(g, 0.0), [&](Output h, Output v) {
      Output next = node(g, place.second, "Add", {h * v, v}).output();
      return std::pair{next, next * next};
    });
    Output dx = value_or_throw(gradients(std::vector{sum(all)}, std::vector{x}))[0];
    PlacedSession s(g, place);
    auto got = s->compile({all, dx}, {}, {x}).run({column({1, 2, 3})});
    CHECK(values(got[0]) == Numbers{1, 16, 225});
    CHECK(values(got[1]) ==
          Numbers{2 * 1 * 1 + 2 * 4 * 2 + 2 * 15 * 6, 2 * 4 * 2 + 2 * 15 * 3 * 2, 2 * 15 * 5});
  }
}

TEST_CASE("a TensorArray refuses what is none of its elements, with the line") {
  Graph g;
  TensorArray a(g, DType::f64, {.element = {3}});
  for (const std::string& text : {error_of([&] { a.push(constant(g, 1.0f)); }), error_of([&] {
                                    a.push(constant(g, Tensor::of<double>({2}, {1, 2})));
                                  }),
                                  error_of([&] { TensorArray(constant(g, 1.0), DType::f64); })})
    CHECK_MESSAGE(contains(text, "scan_test.cpp"), text);
  TensorArray rows =
      TensorArray::unstack(constant(g, Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6})));
  CHECK(rows.element() == PartialShape{3});
  Output y = rows.write(constant(g, 3), constant(g, Tensor::of<double>({3}, {0, 0, 0}))).stack();
  Session s(g, one_thread());
  const std::string hole = s.try_run({y}).status().text();
  CHECK_MESSAGE(contains(hole, "index 3 is outside [0, 3)"), hole);
}

TEST_CASE("lists are neither fed nor fetched, and go to other processes") {
  Graph g;
  TensorArray a = TensorArray::unstack(constant(g, column({1, 2})));
  Session s(g, one_thread());
  const std::string fetched = s.try_run({Output(a)}).status().text();
  CHECK_MESSAGE(contains(fetched, "ListStack"), fetched);
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  const Status fed = s.try_run({x + 1.0}, {}, {{x, list_tensor({})}}).status();
  CHECK_MESSAGE(fed.code() == Code::invalid_argument, fed.text());
  Output length = node(g, kTask1, "ListLength",
                       {node(g, kTask0, "ListUnstack", {constant(g, column({1, 2}))}).output()})
                      .output();
  PlacedSession two(g, kPlaces[1]);
  CHECK(two->run({length})[0].item<std::int64_t>() == 2);
}
