// Gradients at the edges of loops and branches: what carries none, what has no shape, what is used
// in more than one place.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/actors/support/gradient_check.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Output number(Graph& g, const char* name = "x") {
  return placeholder<double>(g, PartialShape::scalar(), name);
}
Output whole_number(Graph& g) { return placeholder<std::int32_t>(g, PartialShape::scalar(), "n"); }
std::vector<Output> gradients_of(Output y, const std::vector<Output>& xs) {
  return value_or_throw(gradients(std::vector{y}, xs));
}
double value(const Tensor& t) { return t.item<double>(); }
Tensor times(std::int32_t n) { return Tensor::scalar(n); }

// `body` of a value, n times.
Output repeat(Graph& g, Output n, Output value, const std::function<Output(Output)>& body) {
  return std::get<1>(while_loop(
      std::tuple{constant(g, 0), value}, [&](Output i, Output) { return i < n; },
      [&](Output i, Output v) {
        return std::tuple{i + 1, body(v)};
      }));
}

std::size_t count_of(const std::vector<NodeDef>& nodes, std::string_view op) {
  return std::size_t(
      std::count_if(nodes.begin(), nodes.end(), [&](const NodeDef& n) { return n.op == op; }));
}

}  // namespace

TEST_CASE("gradients of two loops side by side, and of one behind the other, add up") {
  Graph g;
  Output n = whole_number(g), x = number(g);
  auto doubled = [&](Output v) { return repeat(g, n, v, [](Output u) { return u * 2.0; }); };
  Output beside = gradient_of(doubled(x) + doubled(x * x), x);
  Output behind = gradient_of(doubled(doubled(x)), x);
  Session s(g, one_thread());
  auto step = s.compile({beside, behind}, {}, {n, x});
  for (std::int32_t trips : {0, 1, 5}) {
    auto got = step.run({times(trips), Tensor::scalar(3.0)});
    const double power = double(1 << trips);
    CHECK(value(got[0]) == power + 6 * power);
    CHECK(value(got[1]) == power * power);
  }
}

TEST_CASE("a loop over a value of no known shape, with a branch inside, has its gradient") {
  Graph g;
  Output x = placeholder<double>(g, PartialShape::unknown(), "x");
  Output y = while_loop(
      x, [](Output v) { return sum(v) < 100.0; },
      [&](Output v) {
        return cond(
            sum(v) > 0.0, [&] { return v * v; }, [&] { return v + 1.0; });
      });
  Output dx = gradient_of(y, x);
  Session s(g, one_thread());
  auto step = s.compile({y, dx}, {}, {x});
  auto scalar = step.run({Tensor::scalar(2.0)});  // 2, 4, 16, 256
  CHECK(value(scalar[0]) == 256);
  CHECK(value(scalar[1]) == 1024);
  auto vector = step.run({Tensor::of<double>({2}, {3, 2})});  // 9 4, 81 16, 6561 256
  CHECK(Tensor::same(vector[0], Tensor::of<double>({2}, {6561, 256})));
  CHECK(Tensor::same(vector[1], Tensor::of<double>({2}, {8 * 2187, 8 * 128})));
}

TEST_CASE("nothing flows through what a loop holds constant") {
  Graph g;
  Output x = number(g, "x"), y = number(g, "y");
  auto [rx, ry] = while_loop(
      std::tuple{x, y}, [](Output x, Output) { return x < 100.0; },
      [](Output x, Output y) {
        Output still = stop_gradient(y * y);
        return std::tuple{x * x + still, still};
      });
  Output dx = gradient_of(rx, x);
  std::vector<Output> dy = gradients_of(rx, {y});
  Session s(g, one_thread());
  CHECK(value(s.run({dx}, {}, {{x, Tensor::scalar(3.0)}, {y, Tensor::scalar(2.0)}})[0]) == 156);
  if (!dy[0].empty())
    CHECK(value(s.run({dy[0]}, {}, {{x, Tensor::scalar(3.0)}, {y, Tensor::scalar(2.0)}})[0]) == 0);
  CHECK(gradients_of(stop_gradient(rx + ry), {x, y})[0].empty());
  CHECK(gradients_of(stop_gradient(rx + ry), {x, y})[1].empty());
}

TEST_CASE("no gradient goes through the integers of a loop, nor to what it does not use") {
  Graph g;
  Output n = whole_number(g), x = number(g, "x"), unused = number(g, "unused");
  TensorArray sums(g, DType::i32, {.element = PartialShape::scalar()});
  auto [i, total, all] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0), sums},
      [&](Output i, Output, TensorArray) { return i < n; },
      [&](Output i, Output total, TensorArray all) {
        Output next = total + cast<std::int32_t>(x);
        return std::tuple{i + 1, next, all.write(i, next)};
      });
  Output last = cast<double>(all.read(i - 1)) + cast<double>(total);
  CHECK(gradients_of(last, {x})[0].empty());
  CHECK(count_of(g.def().nodes, "While") == 1);
  Output y = repeat(g, n, x, [](Output v) { return v * v; });
  auto d = gradients_of(y, {unused, x});
  CHECK(d[0].empty());
  CHECK_FALSE(d[1].empty());
}

TEST_CASE("a loop whose other result is only waited for has its gradient") {
  Graph g;
  Output n = whole_number(g), x = number(g, "x"), y = number(g, "y");
  auto [i, last_x, last_y] = while_loop(
      std::tuple{constant(g, 0), x, y}, [&](Output i, Output, Output) { return i < n; },
      [](Output i, Output x, Output y) {
        return std::tuple{i + 1, identity(x), x + y};
      });
  Output waited;
  {
    auto after = g.with_control({last_x});
    waited = identity(last_y);
  }
  Output dx = gradient_of(waited, x), dy = gradient_of(waited, y);
  Session s(g, one_thread());
  auto step = s.compile({waited, dx, dy}, {}, {n, x, y});
  for (std::int32_t trips : {0, 1, 4}) {
    auto got = step.run({times(trips), Tensor::scalar(3.0), Tensor::scalar(5.0)});
    CHECK(value(got[0]) == 5 + 3 * trips);
    CHECK(value(got[1]) == trips);
    CHECK(value(got[2]) == 1);
  }
}

TEST_CASE("the gradient of a loop is asked for inside a branch, and inside a loop") {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output n = whole_number(g), x = number(g);
  Output in_branch = cond(
      p,
      [&] {
        Output start = x * 1.0;
        return gradient_of(repeat(g, n, start, [](Output v) { return v * v; }), start);
      },
      [&] { return x; });
  Output in_loop = repeat(g, n, x, [&](Output v) {
    return gradient_of(repeat(g, n, v, [&](Output u) { return u * u; }), v);
  });
  Session s(g, one_thread());
  auto step = s.compile({in_branch, in_loop}, {}, {p, n, x});
  auto got = step.run({Tensor::scalar(true), times(2), Tensor::scalar(3.0)});
  CHECK(value(got[0]) == 4 * 27);  // of x^4
  CHECK(value(got[1]) == 4.0 * 108 * 108 * 108);
  got = step.run({Tensor::scalar(false), times(1), Tensor::scalar(3.0)});
  CHECK(value(got[0]) == 3);
  CHECK(value(got[1]) == 6);
}

TEST_CASE("what is the same in each iteration is not saved for the gradient") {
  Graph g;
  Output n = whole_number(g), x = number(g, "x"), w = number(g, "w");
  Output y = repeat(g, n, x, [&](Output v) { return v * 3.0 * w; });
  Output dx = gradient_of(y, x);
  CHECK(count_of(g.def().nodes, "SavedList") == 0);
  Output dw = gradient_of(y, w);  // needs v, and that alone
  CHECK(count_of(g.def().nodes, "SavedList") == 1);
  Session s(g, one_thread());
  auto got =
      s.compile({dx, dw}, {}, {n, x, w}).run({times(4), Tensor::scalar(2.0), Tensor::scalar(5.0)});
  CHECK(value(got[0]) == 81.0 * 625);
  CHECK(value(got[1]) == 2.0 * 81 * 4 * 125);
}

TEST_CASE("a loop that reads rows of what is around it makes no full gradient for each") {
  Graph g;
  Output xs = placeholder<double>(g, {1000, 2}, "xs");
  Output y = std::get<1>(while_loop(
      std::tuple{constant(g, std::int64_t{0}), constant(g, Tensor::of<double>({2}, {0, 0}))},
      [](Output i, Output) { return i < std::int64_t{1000}; },
      [&](Output i, Output v) {
        return std::tuple{i + std::int64_t{1}, v + gather(xs, i) * gather(xs, i)};
      }));
  Output dx = gradient_of(y, xs);
  const FunctionDef* backward = nullptr;
  for (const FunctionDef& f : g.def().functions)
    if (f.name.ends_with("body_grad")) backward = &f;
  REQUIRE(backward != nullptr);
  for (const NodeDef& n : backward->nodes) {
    CAPTURE(n.name);
    const bool whole = n.op != "Argument" && !n.op.ends_with("Add") && n.out_types.size() == 1 &&
                       n.out_shapes[0] == PartialShape{1000, 2};
    CHECK_FALSE_MESSAGE(whole, n.op);
  }
  Session s(g, one_thread());
  std::vector<double> values(2000);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = double(k) - 700;
  const Tensor got = s.run({dx}, {}, {{xs, Tensor::of<double>({1000, 2}, values)}})[0];
  REQUIRE(got.elements() == 2000);
  for (std::size_t k = 0; k < values.size(); ++k) CHECK(got.data<double>()[k] == 2 * values[k]);
}

TEST_CASE("two gradients of one list do not meet") {
  Graph g;
  Output x = placeholder<double>(g, {3}, "x");
  TensorArray rows = TensorArray::unstack(x * x);
  Output first = rows.read(constant(g, 0)) * rows.read(constant(g, 0));
  Output all = sum(rows.stack());
  Output d_first = gradient_of(first, x), d_all = gradient_of(all, x);
  Output d_both = gradient_of(first + all, x);
  Session s(g, one_thread());
  auto got = s.run({d_first, d_all, d_both}, {}, {{x, Tensor::of<double>({3}, {2, 3, 5})}});
  CHECK(Tensor::same(got[0], Tensor::of<double>({3}, {32, 0, 0})));
  CHECK(Tensor::same(got[1], Tensor::of<double>({3}, {4, 6, 10})));
  CHECK(Tensor::same(got[2], Tensor::of<double>({3}, {36, 6, 10})));
}

TEST_CASE("a variable that a map inside a map reads is trained through both") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  Output rows = constant(g, Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
  Output mapped = map(
      rows, [&](Output row) { return map(row, [&](Output x) { return x + read(v) * read(v); }); });
  Output dv = gradient_of(mean(mapped * mapped), v);
  Session s(g, one_thread());
  s.init();
  CHECK(value(s.run({dv})[0]) == doctest::Approx(150));  // the mean of 4 v (x + v v)
}
