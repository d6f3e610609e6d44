// Shapes that only a run knows, where loops, functions and branches declare some: they are checked
// as values get there.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "tests/actors/support/gradient_check.hpp"
#include "tests/graph/paper_loop.hpp"
#include "tests/protocol/loop_examples.hpp"

using namespace troupe;
using namespace troupe::test;
using loops::on;

namespace {

const ValueType three{DType::f64, {3}};

// What only a run knows: `shape` says it.
struct Fed {
  explicit Fed(Graph& g)
      : x(placeholder<double>(g, {3}, "x")), shape(placeholder<std::int64_t>(g, {-1}, "shape")) {}
  // The same numbers, of that shape.
  Output in_shape(const Output& v) const { return reshape(v, shape); }
  Output x, shape;
};

Tensor dims(std::vector<std::int64_t> all) {
  return Tensor::of<std::int64_t>({std::int64_t(all.size())}, all);
}
Tensor doubles(const std::vector<double>& all) {
  return Tensor::of<double>({std::int64_t(all.size())}, all);
}

// y, of a value x and what reshapes as only a run knows.
using Make = std::function<Output(Graph&, const Output& x, const std::function<Output(Output)>&)>;

struct Example {
  const char* name;
  Make make;
};

// Where values of shape [3] are declared there are some of which that is not known. What is on
// `there` is elsewhere.
std::vector<Example> examples(const std::string& there) {
  auto away = [there](Graph& g, const auto& make) { return on(g, there, make); };
  return {
      {"a loop",
       [away](Graph& g, const Output& x, const auto& f) {
         return loop_of(g, constant(g, 3), x,
                        [&](Output, Output v) { return f(away(g, [&] { return sin(v) * x; })); });
       }},
      {"a loop elsewhere",
       [away](Graph& g, const Output& x, const auto& f) {
         return loop_of(g, constant(g, 3), x, [&](Output, Output v) {
           Output w = away(g, [&] { return f(sin(v)); });
           return f(w * x);
         });
       }},
      {"a loop in a loop, with a branch",
       [away](Graph& g, const Output& x, const auto& f) {
         return loop_of(g, constant(g, 3), x, [&](Output i, Output v) {
           return loop_of(g, i, f(v * x),
                          [&](Output j, Output w) {
                            return cond(
                                mod(j, constant(g, 2)) == 0,
                                [&] { return away(g, [&] { return f(tanh(w)); }); },
                                [&] { return w * x; });
                          },
                          {.shapes = {{}, {3}}});
         });
       }},
      {"a function",
       [away](Graph& g, const Output& x, const auto& f) {
         Function square = g.function("square", {three}, {three}, [&](Function&, Output v) {
           return f(away(g, [&] { return v * v + x; }));
         });
         return square(f(x)) + square(square(f(sin(x))));
       }},
      {"a function in a loop",
       [away](Graph& g, const Output& x, const auto& f) {
         Function half =
             g.function("half", {three}, {three}, [&](Function&, Output v) { return f(v * 0.5); });
         return loop_of(g, constant(g, 3), x,
                        [&](Output, Output v) { return away(g, [&] { return half(f(v * x)); }); });
       }},
      {"branches",
       [away](Graph& g, const Output& x, const auto& f) {
         Output y = cond(
             sum(x) > constant(g, 0.0), [&] { return f(x * x); },
             [&] { return away(g, [&] { return sin(x); }); });
         return f(y) * switch_case(constant(g, 1), {[&] { return f(x); }, [&] { return x * y; }});
       }},
      {"scan",
       [away](Graph& g, const Output& x, const auto& f) {
         auto [last, all] = scan(concat({x, x}), x, [&](Output h, Output v) {
           Output next = away(g, [&] { return f(h * v + x); });
           return std::pair{next, f(next * h)};
         });
         return last * sum(all);
       }},
      {"map",
       [away](Graph& g, const Output& x, const auto& f) {
         return f(map(x, [&](Output v) { return sum(away(g, [&] { return f(x * v); }) * x); }));
       }},
      {"fold",
       [away](Graph& g, const Output& x, const auto& f) {
         return fold(
             x, x, [&](Output h, Output v) { return f(away(g, [&] { return sin(h) * v + x; })); });
       }},
  };
}
// Those that stay on one device.
std::vector<Example> examples_at_home() {
  return {
      {"a function that calls itself",
       [](Graph& g, const Output& x, const auto& f) {
         Function power = g.function("power", {i64_scalar, three}, {three},
                                     [&](Function& self, const std::vector<Output>& a) {
                                       return cond(
                                           a[0] < 1, [&] { return f(a[1]); },
                                           [&] {
                                             return f(self.call({a[0] - 1, f(a[1] * x)})[0]) * a[1];
                                           });
                                     });
         return power.call({constant(g, std::int64_t{3}), f(x)})[0];
       }},
      {"an array",
       [](Graph& g, const Output& x, const auto& f) {
         TensorArray ta(g, DType::f64, {.element = {3}});
         auto [n, all] = while_loop(
             std::tuple{constant(g, 0), ta}, [&](Output i, TensorArray) { return i < 3; },
             [&](Output i, TensorArray ta) {
               return std::tuple{i + 1, ta.write(i, f(x * x * cast<double>(i)))};
             });
         TensorArray other = all.push(f(sin(x)));
         return sum(other.stack(), {.axes = {0}}) + other.read(constant(g, 1)) * x;
       }},
      {"lists that a loop changes",
       [](Graph& g, const Output& x, const auto& f) {
         Output list = list_push(list_empty(g, DType::f64, {.shape = {3}}), x);
         auto [i, last] = while_loop(
             std::tuple{constant(g, 0), list}, [&](Output i, Output) { return i < 3; },
             [&](Output i, Output l) {
               Output v = list_get(l, constant(g, 0), DType::f64);
               return std::tuple{i + 1, list_push(list_empty(g, DType::f64), f(sin(v) * x))};
             });
         return list_get(last, constant(g, 0), DType::f64);
       }},
      {"a loop in the paper's words",
       [](Graph& g, const Output& x, const auto& f) {
         PaperLoop loop(g, "repeat_" + std::to_string(g.def().nodes.size()));
         Output i = loop.variable(constant(g, 0));
         loop.variable(x);
         Output limit = loop.constant(constant(g, 3)), one = loop.constant(constant(g, 1));
         Output same = loop.constant(f(x));
         loop.again(i < limit);
         loop.next(0, loop.passed(0) + one);
         loop.next(1, loop.passed(1) * same);
         return loop.last(1);
       }},
  };
}

std::string error_of(Session& s, const Output& y, const Fed& fed, const Tensor& x,
                     const Tensor& shape) {
  auto got = s.try_run({y}, {}, {{fed.x, x}, {fed.shape, shape}});
  REQUIRE(!got.ok());
  return got.status().text();
}

#define CHECK_HAS(text, part) \
  CHECK_MESSAGE((text).find(part) != std::string::npos, (text), "\nis without ", part)

bool near(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (!(std::abs(x - y) <= 1e-12 * (std::abs(x) + std::abs(y)))) return false;
  }
  return true;
}

// y and its gradients of first and second order are those of other examples: of what is written
// without reshape but for the order of sums, of what is elsewhere to the bit. `names`: of which;
// none: all.
void compare(const std::vector<Example>& all, const std::vector<Example>& others, bool reshaped,
             const Place& place, const std::set<std::string>& names = {}) {
  Graph g;
  Fed fed(g);
  PlacedSession s(g, place);
  const std::vector<Feed> feeds{{fed.x, doubles({0.25, -1.5, 2})}, {fed.shape, dims({3})}};
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::string name = all[k].name;
    if (!names.empty() && !names.contains(name)) continue;
    CAPTURE(name);
    std::vector<Output> fetches;
    auto add = [&](const Make& make, bool in_run) {
      auto here = g.with_device(place.first);
      Output y = make(g, fed.x, [&](const Output& v) { return in_run ? fed.in_shape(v) : v; });
      fetches.push_back(y);
      if (name.find("paper") != name.npos) return;
      Output dx = gradient_of(sum(y * sin(y)), fed.x);
      fetches.insert(fetches.end(), {dx, gradient_of(sum(dx * dx), fed.x)});
    };
    add(all[k].make, true);
    add(others[k].make, reshaped);
    const std::vector<Tensor> got = s->run(fetches, {}, feeds);
    for (std::size_t i = 0; i < got.size() / 2; ++i) {
      const Tensor &is = got[i], &should = got[i + got.size() / 2];
      CHECK_MESSAGE((reshaped ? Tensor::same(is, should) : near(is, should)), i, ": ", is.text(),
                    " instead of ", should.text());
    }
  }
}

}  // namespace

TEST_CASE("values of shapes that only a run knows go where a shape is declared") {
  compare(examples(kTask0), examples(kTask0), false, kPlaces[0]);
  compare(examples_at_home(), examples_at_home(), false, kPlaces[0]);
}

TEST_CASE("values of shapes that only a run knows go where a shape is declared in two processes") {
  compare(examples(kTask1), examples(kTask0), true, kPlaces[1], {"a loop elsewhere", "scan"});
}

TEST_CASE("all kinds of declared shapes are checked in two processes [slow]") {
  compare(examples(kTask1), examples(kTask0), true, kPlaces[1]);
}

TEST_CASE("a variable that gets another shape in a run is an error with its iteration and line") {
  Graph g;
  Fed fed(g);
  Site made;
  auto [n, y] = while_loop(
      std::tuple{constant(g, 0), fed.x}, [&](Output i, Output) { return i < 4; },
      [&](Output i, Output v) {
        Output dims = cond(
            i < 2, [&] { return shape(fed.x); }, [&] { return fed.shape; });
        made = Site::here();
        Output next = reshape(v, dims);
        return std::tuple{i + 1, next};
      });
  Session s(g, one_thread());
  const Tensor x = doubles({1, 2, 3});
  CHECK(s.run({y}, {}, {{fed.x, x}, {fed.shape, dims({3})}})[0].shape() == Shape{3});
  const std::string text = error_of(s, y, fed, x, dims({1, 3}));
  CHECK_HAS(text, "variable 1 of the loop 'while' (" + std::string(made.file));
  CHECK_HAS(text, "whose next value is 'Reshape' (" + made.file + ":" +
                      std::to_string(made.line + 1) + ") of function 'while/body'");
  CHECK_HAS(text, "the shape is [1,3], and should be [3]");
  CHECK_HAS(text, "in iteration 2 of 'while'");
}

TEST_CASE(
    "an argument of another shape in a run is an error with the function and the call's line") {
  Graph g;
  Fed fed(g);
  Function f = g.function("half", {three}, {three}, [](Function&, Output v) { return v * 0.5; });
  Site called = Site::here();
  Output y = f(fed.in_shape(fed.x));
  Session s(g, one_thread());
  const std::string text = error_of(s, y, fed, doubles({1, 2, 3}), dims({3, 1}));
  CHECK_HAS(text, "argument 0 of function 'half' (" + called.file);
  CHECK_HAS(text, called.file + ":" + std::to_string(called.line + 1));
  CHECK_HAS(text, "the shape is [3,1], and should be [3]");
}

TEST_CASE("a result of another shape in a run is an error with the function and its line") {
  for (const bool itself : {false, true}) {
    CAPTURE(itself);
    Graph g;
    Fed fed(g);
    Site made;
    Function f = g.function("f", {i64_scalar, three}, {three},
                            [&](Function& self, const std::vector<Output>& a) {
                              if (itself)
                                cond(
                                    a[0] > 0,
                                    [&] {
                                      return self.call({a[0] - 1, a[1]})[0];
                                    },
                                    [&] { return a[1]; });
                              made = Site::here();
                              return reshape(a[1], fed.shape);
                            });
    Output y = f.call({constant(g, std::int64_t{0}), fed.x})[0];
    Session s(g, one_thread());
    const std::string text = error_of(s, y, fed, doubles({1, 2, 3}), dims({1, 3}));
    CHECK_HAS(text, "result 0 of function 'f' (" + made.file);
    CHECK_HAS(text, "'Reshape' (" + made.file + ":" + std::to_string(made.line + 1) + ")");
    CHECK_HAS(text, "the shape is [1,3], and should be [3]");
  }
}

TEST_CASE("what a loop begins with in another shape than is declared is an error of the run") {
  Graph g;
  Fed fed(g);
  Output y = while_loop(
      fed.in_shape(fed.x), [&](Output v) { return sum(v) < constant(g, 10.0); },
      [&](Output v) { return v * 2.0; }, {.shapes = {{3}}});
  CHECK(y.shape() == PartialShape{3});
  Session s(g, one_thread());
  const Tensor x = doubles({1, 2, 3});
  CHECK(Tensor::same(s.run({y}, {}, {{fed.x, x}, {fed.shape, dims({3})}})[0], doubles({2, 4, 6})));
  CHECK_HAS(error_of(s, y, fed, x, dims({1, 3})), "variable 0 of the loop 'while'");
}

TEST_CASE("a branch that is not taken may return another shape than is declared") {
  Graph g;
  Fed fed(g);
  Function f =
      g.function("f", {three}, {three}, [&](Function&, Output v) { return fed.in_shape(v); });
  Output y = cond(
      sum(fed.x) > constant(g, 0.0), [&] { return f(fed.x); }, [&] { return fed.x * 2.0; });
  Session s(g, one_thread());
  CHECK(Tensor::same(s.run({y}, {}, {{fed.x, doubles({-1, -2, -3})}, {fed.shape, dims({1, 3})}})[0],
                     doubles({-2, -4, -6})));
  CHECK_HAS(error_of(s, y, fed, doubles({1, 2, 3}), dims({1, 3})), "result 0 of function 'f'");
}

TEST_CASE("shapes that differ for certain are refused when a loop or a call is built") {
  Graph g;
  Fed fed(g);
  Output wrong = reshape(fed.x, {3, 1});
  Function f = g.function("half", {three}, {three}, [](Function&, Output v) { return v * 0.5; });
  CHECK_THROWS_WITH_AS(f(wrong), doctest::Contains("f64[3,1] is passed"), Error);
  CHECK_THROWS_WITH_AS(loop_of(g, constant(g, 2), fed.x, [&](Output, Output) { return wrong; }),
                       doctest::Contains("a dimension that changes is declared as -1"), Error);
  CHECK_THROWS_WITH_AS(g.function("wrong", {three}, {three},
                                  [&](Function&, Output v) {
                                    return reshape(v, {3, 1});
                                  }),
                       doctest::Contains("f64[3] is declared"), Error);
}

TEST_CASE("a value from which shapes were inferred is fed, and no worker is taken for a liar") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    const Output x = placeholder<double>(g, {6}, "x");
    const Output rows = constant(g, std::int64_t{2}), columns = constant(g, std::int64_t{3});
    const Output dims_of = pack({rows, columns}, {});
    const Output s = constant(g, Shape{2}, {std::int64_t{2}, std::int64_t{3}});
    const auto there = [&](const std::function<Output()>& make) {
      auto on = g.with_device(place.second);
      return make();
    };
    const Output y = there([&] { return reshape(x, s); });
    const Output of_y = there([&] { return shape(y * 2.0); });
    const Output z = there([&] { return reshape(x, dims_of); });
    const Output twice = there([&] { return s + s; });
    const Output moved = [&] {
      auto beside = g.with_colocation(g.node(y.node()).name);  // apart from what reads it
      return reshape(x, s);
    }();
    const Output next = node(g, place.first, "Neg", {moved}).output();
    const Output chosen = cond(
        sum(x) > constant(g, 0.0), [&] { return reshape(x, s); }, [&] { return -y; });
    PlacedSession session(g, place);
    const Tensor six = doubles({1, 2, 3, 4, 5, 6});
    const auto run = [&](const Output& fetch, const Output& fed, const Tensor& value) {
      return session->try_run({fetch}, {}, {{x, six}, {fed, value}});
    };
    const auto refused = [&](const Output& fetch, const Output& fed, const Tensor& value) {
      const Status status = run(fetch, fed, value).status();
      CAPTURE(status.text());
      CHECK(status.code() == Code::invalid_argument);
      CHECK(status.text().find("run_shapes_test.cpp:") != std::string::npos);
      CHECK(status.text().find("Reshape") != std::string::npos);
      CHECK(status.text().find("should be [2,3]") != std::string::npos);
    };
    const Tensor same = dims({2, 3}), other = dims({3, 2});
    for (int again = 0; again < 2; ++again) {
      refused(y, s, other);
      refused(of_y, s, other);
      refused(moved, s, other);
      refused(next, s, other);
      refused(z, dims_of, other);
    }
    CHECK(run(chosen, s, other).status().code() == Code::invalid_argument);
    for (const auto& [fetch, fed] : {std::pair{y, s}, {z, dims_of}, {chosen, s}}) {
      const auto values = run(fetch, fed, same);
      REQUIRE_MESSAGE(values.ok(), values.status().text());
      CHECK((*values)[0].shape() == Shape{2, 3});
    }
    for (const Output& part : {rows, columns}) {
      const auto rest = run(z, part, Tensor::scalar(std::int64_t{-1}));
      REQUIRE_MESSAGE(rest.ok(), rest.status().text());
      CHECK((*rest)[0].shape() == Shape{2, 3});
    }
    const auto sums = run(twice, s, other);  // no shape depends on it
    REQUIRE_MESSAGE(sums.ok(), sums.status().text());
    CHECK((*sums)[0].span<std::int64_t>()[0] == 6);
    CHECK(session->run({y}, {}, {{x, six}})[0].shape() == Shape{2, 3});
  }
}
