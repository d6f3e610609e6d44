// Variables in functions that call themselves: each call sees what the ones before it left.
#include <doctest/doctest.h>

#include <functional>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Output depth_fed(Graph& g, const char* name = "k") {
  return placeholder<double>(g, PartialShape::scalar(), name);
}

}  // namespace

TEST_CASE("a function that calls itself writes in each call") {
  Graph g;
  Output k = depth_fed(g);
  Variable v = variable(g, "v", Tensor::scalar(10.0));
  Function f = g.function("f", {f64_scalar}, {f64_scalar}, [&](Function& self, Output k) {
    Op add = assign_add(v, constant(g, 1.0));
    Output deeper = cond(
        k > 0.0, [&] { return self(k - 1.0); }, [&] { return constant(g, 0.0); });
    return read(v, {add}) + deeper * 0.0;
  });
  Output seen = f(k);
  Session s(g, one_thread());
  s.init();
  CHECK(s.run({seen}, {}, {{k, Tensor::scalar(3.0)}})[0].item<double>() == 11);
  CHECK(now(s, v) == 14);
  CHECK(s.run({seen}, {}, {{k, Tensor::scalar(0.0)}})[0].item<double>() == 15);
  CHECK(now(s, v) == 15);
  s.run({seen}, {}, {{k, Tensor::scalar(500.0)}});
  CHECK(now(s, v) == 516);
}

TEST_CASE("calls write where they are made, and see what the calls before them left") {
  Graph g;
  Output n = depth_fed(g);
  Variable v = variable(g, "v", Tensor::scalar(0.0)), w = variable(g, "w", Tensor::scalar(1.0));
  // v = 10 v + n at the leaves, in their order; w doubles where n is 3.
  Function tree = g.function("tree", {f64_scalar}, {f64_scalar}, [&](Function& self, Output n) {
    return cond(
        n < 2.0,
        [&] {
          Op write = assign(v, read(v) * 10.0 + n);
          return read(v, {write});
        },
        [&] {
          Output left = self(n - 1.0);
          Output right;
          {
            auto behind = g.with_control({Op(left)});
            right = self(n - 2.0);
          }
          cond(
              n == 3.0, [&] { assign_add(w, read(w)); }, [&] {});
          return left + right;
        });
  });
  Output total = tree(n);
  Session s(g, one_thread());
  s.init();
  double digits = 0, doubled = 1;
  const std::function<double(double)> plain = [&](double n) -> double {
    if (n < 2) return digits = digits * 10 + n;
    const double left = plain(n - 1), right = plain(n - 2);
    if (n == 3) doubled *= 2;
    return left + right;
  };
  for (double at : {0.0, 1.0, 2.0, 4.0, 5.0}) {
    CAPTURE(at);
    const double wanted = plain(at);
    CHECK(s.run({total}, {}, {{n, Tensor::scalar(at)}})[0].item<double>() == wanted);
    CHECK(now(s, v) == digits);
    CHECK(now(s, w) == doubled);
    if (at == 4.0) s.run({}, {assign(v, constant(g, digits = 1.0))});
  }
}

TEST_CASE("two functions that call each other write, in loops, too") {
  Graph g;
  Output n = depth_fed(g, "n");
  Variable a = variable(g, "a", Tensor::scalar(0.0)), b = variable(g, "b", Tensor::scalar(0.0));
  Function even = g.function("even", {f64_scalar}, {f64_scalar}, [&](Function& even, Output k) {
    Function odd = g.function("odd", {f64_scalar}, {f64_scalar}, [&](Function&, Output k) {
      assign_add(b, k);
      return even(k - 1.0);
    });
    Op add = assign_add(a, constant(g, 1.0));
    return cond(
        k < 0.5, [&] { return read(a, {add}); }, [&] { return odd(k); });
  });
  auto [i, sum] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0.0)}, [&](Output i, Output) { return i < 3; },
      [&](Output i, Output sum) {
        return std::tuple{i + 1, sum + even(n)};
      });
  Session s(g, one_thread());
  s.init();
  CHECK(s.run({sum}, {}, {{n, Tensor::scalar(2.0)}})[0].item<double>() == 3 + 6 + 9);
  CHECK(now(s, a) == 9);
  CHECK(now(s, b) == 3 * (2 + 1));
}

TEST_CASE("a call whose branch is not taken writes nothing, and one that fails neither") {
  Graph g;
  Output k = depth_fed(g);
  Variable v = variable(g, "v", Tensor::scalar(1.0));
  Function down = g.function("down", {f64_scalar}, {f64_scalar}, [&](Function& self, Output k) {
    return cond(
        k > 0.0,
        [&] {
          assign_add(v, constant(g, 1.0));
          return self(k - 1.0);
        },
        [&] { return identity(k); });
  });
  Output end = down(k), checked = check_numerics(log(down(k)));
  Session s(g, one_thread());
  s.init();
  s.run({end}, {}, {{k, Tensor::scalar(0.0)}});
  CHECK(now(s, v) == 1);
  CHECK_FALSE(s.try_run({checked}, {}, {{k, Tensor::scalar(4.5)}}).ok());
  CHECK(now(s, v) == 1);
  s.run({end}, {}, {{k, Tensor::scalar(4.5)}});
  CHECK(now(s, v) == 6);
}

TEST_CASE("gradients go through calls that read and write variables, but not to these") {
  Graph g;
  Output k = depth_fed(g), x = depth_fed(g, "x");
  Variable v = variable(g, "v", Tensor::scalar(2.0));
  Function power = g.function("power", {f64_scalar, f64_scalar}, {f64_scalar},
                              [&](Function& self, const std::vector<Output>& a) {
                                return std::vector{cond(
                                    a[0] > 0.0,
                                    [&] {
                                      Output before = read(v);
                                      Op add = assign_add(v, constant(g, 1.0));
                                      auto behind = g.with_control({add});
                                      return self.call({a[0] - 1.0, a[1] * before})[0];
                                    },
                                    [&] { return a[1] * a[1]; })};
                              });
  Output y = power.call({k, x})[0];
  Output slope = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
  const Status refused = gradients(std::vector{y}, std::vector{v.handle()}).status();
  CHECK(refused.code() == Code::unimplemented);
  CHECK_MESSAGE(refused.text().find("pass the variable's value") != std::string::npos,
                refused.text());
  CHECK(refused.text().find("recursion_state_test.cpp") != std::string::npos);
  Session s(g, one_thread());
  s.init();
  auto out = s.run({y, slope}, {}, {{k, Tensor::scalar(3.0)}, {x, Tensor::scalar(0.5)}});
  CHECK(out[0].item<double>() == 24 * 24 * 0.25);
  CHECK(out[1].item<double>() == 24 * 24);
  CHECK(now(s, v) == 5);
}

TEST_CASE("a long cycle of functions that use a variable is compiled in no time") {
  Graph g;
  Output k = depth_fed(g);
  Variable v = variable(g, "v", Tensor::scalar(0.0));
  constexpr int kFunctions = 40;
  std::function<Output(Function&, int, Output)> level = [&](Function& first, int i, Output x) {
    if (i == kFunctions) return first(x - 1.0);
    const Function next = g.function("f", {f64_scalar}, {f64_scalar}, [&, i](Function&, Output y) {
      const Op add = assign_add(v, constant(g, 1.0));
      auto behind = g.with_control({add});
      return level(first, i + 1, identity(y));
    });
    return next(x);
  };
  const Function first = g.function("f", {f64_scalar}, {f64_scalar}, [&](Function& self, Output x) {
    return cond(
        x < 0.0, [&] { return identity(x); }, [&] { return level(self, 0, x); });
  });
  const Output y = first(k);
  Session s(g, one_thread());
  s.init();
  CHECK(s.run({y}, {}, {{k, Tensor::scalar(1.0)}})[0].item<double>() == -1);
  CHECK(now(s, v) == 2 * kFunctions);
}

TEST_CASE("a chain of functions that is too long is refused, by name, not by the stack") {
  Graph g;
  const Output k = depth_fed(g);
  const Variable v = variable(g, "v", Tensor::scalar(1.0));
  Function f =
      g.function("f", {f64_scalar}, {f64_scalar}, [&](Function&, Output x) { return x * read(v); });
  for (int i = 0; i < 15'000; ++i)
    f = g.function("f", {f64_scalar}, {f64_scalar}, [f](Function&, Output x) { return f(x); });
  const Output y = f(k);
  Session s(g, one_thread());
  const Status refused = s.try_run({y}, {}, {{k, Tensor::scalar(1.0)}}).status();
  CHECK(refused.code() == Code::resource_exhausted);
  CHECK_MESSAGE(refused.message().find("deep, at 'f") != std::string::npos, refused.text());
}

TEST_CASE("what asks for queues in a function that calls itself is refused with the line") {
  Graph g;
  Output queue = queue_on(g, "");
  Function f = g.function("f", {f32_scalar}, {f32_scalar}, [&](Function& self, Output k) {
    return cond(
        k > 0.0f, [&] { return self(k - take_from(queue)); }, [&] { return identity(k); });
  });
  Output y = f(constant(g, 3.0f));
  Session s(g, one_thread());
  const Status refused = s.try_run({y}).status();
  CHECK(refused.code() == Code::unimplemented);
  CHECK_MESSAGE(refused.text().find("which is called by itself") != std::string::npos,
                refused.text());
}
