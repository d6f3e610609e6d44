// Functions that call themselves, in runs: what is computed, in one process and over two.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "ops/api.hpp"
#include "tests/actors/support/replicas.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/contains.hpp"
#include "tests/net/raw_client.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const ValueType i32_scalar{DType::i32, PartialShape::scalar()};

Output called_with(Graph& g, const char* name = "x") {
  return placeholder<float>(g, PartialShape::scalar(), name);
}
Output integer(Graph& g, const char* name = "n") {
  return placeholder<std::int32_t>(g, PartialShape::scalar(), name);
}
Tensor i32(std::int32_t v) { return Tensor::scalar(v); }

Function factorial(Graph& g, const char* device = nullptr) {
  return g.function("fact", {f32_scalar}, {f32_scalar}, [=, &g](Function& self, Output k) {
    return cond(
        k < 1.0f, [&] { return ones_like(k); },
        [&] {
          Output less = device ? node(g, device, "Sub", {k, constant(g, 1.0f)}).output() : k - 1.0f;
          return k * self(less);
        });
  });
}

Function fibonacci(Graph& g) {
  return g.function("fib", {i32_scalar}, {i32_scalar}, [](Function& self, Output k) {
    return cond(
        k < 2, [&] { return identity(k); }, [&] { return self(k - 1) + self(k - 2); });
  });
}

// How deep it is called: 1 + that of k - 1.
Function depth(Graph& g) {
  return g.function("depth", {i32_scalar}, {i32_scalar}, [](Function& self, Output k) {
    return cond(
        k > 0, [&] { return self(k - 1) + 1; }, [&] { return identity(k); });
  });
}

Function endless(Graph& g) {
  return g.function("endless", {i32_scalar}, {i32_scalar},
                    [](Function& self, Output k) { return self(k + 1) + 1; });
}

}  // namespace

TEST_CASE("a factorial calls itself, on either of two processes") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = called_with(g), y;
    {
      auto there = g.with_device(place.second);
      y = factorial(g)(x + 0.0f);
    }
    Output z = y + x;
    PlacedSession s(g, place);
    auto step = s->compile({y, z}, {}, {x});
    float product = 1;
    for (int k = 0; k < 12; ++k) {
      if (k > 0) product *= float(k);
      auto out = step.run({Tensor::scalar(float(k))});
      CHECK(out[0].item<float>() == product);
      CHECK(out[1].item<float>() == product + float(k));
    }
  }
}

TEST_CASE("a Fibonacci number is the sum of two calls, of two call sites") {
  Graph g;
  Output n = integer(g);
  Function fib = fibonacci(g);
  Output y = fib(n), z = fib(n + 1) - fib(y);
  Session s(g, one_thread());
  auto step = s.compile({y, z}, {}, {n});
  const int numbers[] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
  auto value = [](int n) {
    int a = 0, b = 1;
    for (int i = 0; i < n; ++i) b = std::exchange(a, b) + b;
    return a;
  };
  for (int k = 0; k < 8; ++k) {
    auto out = step.run({i32(k)});
    CHECK(out[0].item<std::int32_t>() == numbers[k]);
    CHECK(out[1].item<std::int32_t>() == numbers[k + 1] - value(numbers[k]));
  }
}

TEST_CASE("even and odd call each other") {
  Graph g;
  Output n = integer(g);
  Function even = g.function("even", {i32_scalar}, {bool_scalar}, [&](Function& even, Output k) {
    Function odd = g.function("odd", {i32_scalar}, {bool_scalar}, [&](Function&, Output j) {
      return cond(
          j == 0, [&] { return constant(g, false); }, [&] { return even(j - 1); });
    });
    return cond(
        k == 0, [&] { return constant(g, true); }, [&] { return odd(k - 1); });
  });
  Output y = even(n);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n});
  for (int k : {0, 1, 2, 3, 10, 11, 501}) CHECK(step.run({i32(k)})[0].item<bool>() == (k % 2 == 0));
}

TEST_CASE("Ackermann's function calls itself with what it returned") {
  Graph g;
  Output m = integer(g, "m"), n = integer(g, "n");
  Function a = g.function("ackermann", {i32_scalar, i32_scalar}, {i32_scalar},
                          [](Function& self, Output m, Output n) {
                            return cond(
                                m == 0, [&] { return n + 1; },
                                [&] {
                                  return cond(
                                      n == 0, [&] { return self(m - 1, ones_like(n)); },
                                      [&] { return self(m - 1, self(m, n - 1)); });
                                });
                          });
  Output y = a(m, n);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {m, n});
  auto of = [&](int m, int n) { return step.run({i32(m), i32(n)})[0].item<std::int32_t>(); };
  CHECK(of(0, 4) == 5);
  CHECK(of(1, 3) == 5);
  CHECK(of(2, 3) == 9);
  CHECK(of(3, 3) == 61);
}

TEST_CASE("ten thousand calls deep, again and again, in the same memory") {
  Graph g;
  Output n = integer(g);
  Output y = depth(g)(n);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n});
  CHECK(step.run({i32(10'000)})[0].item<std::int32_t>() == 10'000);
  const std::uint64_t before = testing::held_bytes();
  for (int i = 0; i < 5; ++i) CHECK(step.run({i32(10'000)})[0].item<std::int32_t>() == 10'000);
  CHECK(testing::held_bytes() < before + (std::uint64_t{4} << 20));
}

TEST_CASE("a call in a loop in a function that calls itself, in a loop") {
  Graph g;
  Output n = integer(g);
  // trees(k) = 1 + the sum of trees(i) for i < k: 2 to the power of k.
  Function trees = g.function("trees", {i32_scalar}, {i32_scalar}, [&](Function& self, Output k) {
    return std::get<1>(while_loop(
        std::tuple{zeros_like(k), ones_like(k)}, [&](Output i, Output) { return i < k; },
        [&](Output i, Output sum) {
          return std::tuple{i + 1, sum + self(i)};
        }));
  });
  Output all = std::get<1>(while_loop(
      std::tuple{constant(g, 0), constant(g, 0)}, [&](Output i, Output) { return i < n; },
      [&](Output i, Output sum) {
        return std::tuple{i + 1, sum + trees(i)};
      }));
  Session s(g, one_thread());
  auto step = s.compile({all}, {}, {n});
  for (int k : {0, 1, 2, 5, 9}) CHECK(step.run({i32(k)})[0].item<std::int32_t>() == (1 << k) - 1);
}

TEST_CASE("functions that do not call themselves are a part of those that do") {
  Graph g;
  Output n = integer(g);
  Function twice =
      g.function("twice", {i32_scalar}, {i32_scalar}, [](Function&, Output k) { return k + k; });
  Function power = g.function("power", {i32_scalar}, {i32_scalar}, [&](Function& self, Output k) {
    return cond(
        k == 0, [&] { return ones_like(k); }, [&] { return twice(self(k - 1)); });
  });
  Function around = g.function("around", {i32_scalar}, {i32_scalar},
                               [&](Function&, Output k) { return power(k) + power(twice(k)); });
  Output y = around(n);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n});
  CHECK(step.run({i32(4)})[0].item<std::int32_t>() == 16 + 256);
}

TEST_CASE("a call in a branch that is not taken calls nothing") {
  Graph g;
  Output n = integer(g), p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output y = cond(
      p, [&] { return endless(g)(n); }, [&] { return n * 2; });
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n, p});
  CHECK(step.run({i32(4), Tensor::scalar(false)})[0].item<std::int32_t>() == 8);
  CHECK(step.try_run({i32(4), Tensor::scalar(true)}).status().code() == Code::resource_exhausted);
  CHECK(step.run({i32(5), Tensor::scalar(false)})[0].item<std::int32_t>() == 10);
}

TEST_CASE("recursion without end is an error that names the function and the line") {
  Graph g;
  Output n = integer(g);
  Output y = endless(g)(n);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n});
  for (int i = 0; i < 2; ++i) {
    Status ended = step.try_run({i32(0)}).status();
    CHECK(ended.code() == Code::resource_exhausted);
    CHECK_MESSAGE(contains(ended.text(), "function endless ("), ended.text());
    CHECK_MESSAGE(contains(ended.text(), "recursion_test.cpp:"), ended.text());
    CHECK_MESSAGE(ended.text().size() < 2'000, ended.text());
  }
}

TEST_CASE("calls give way to other steps, and end with their run's deadline") {
  Graph g;
  Output n = integer(g), x = called_with(g);
  // Takes for ever, and is never deep.
  Output y = while_loop(
      n, [&](Output v) { return v < 100; }, [f = fibonacci(g)](Output v) { return v + f(v) * 0; });
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n});
  auto other = s.compile({x + 1.0f}, {}, {x});
  std::thread runs([&] {
    Status ended = step.try_run({i32(18)}, {.timeout = std::chrono::milliseconds(300)}).status();
    CHECK(ended.code() == Code::deadline_exceeded);
  });
  for (int i = 0; i < 20; ++i) CHECK(other.run({Tensor::scalar(1.0f)})[0].item<float>() == 2);
  runs.join();
}

TEST_CASE("a failure in a call names the node, its line, the function and how deep it is") {
  Graph g;
  Output n = integer(g);
  Function f = g.function("down", {i32_scalar}, {i32_scalar}, [&](Function& self, Output k) {
    auto checked = g.with_control({assert_(k != 3, {.message = "it is three"})});
    return cond(
        k > 0, [&] { return self(k - 1) + 1; }, [&] { return identity(k); });
  });
  Output y = f(n);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n});
  const std::string text = step.try_run({i32(7)}).status().text();
  CHECK_MESSAGE(contains(text, "it is three"), text);
  CHECK_MESSAGE(contains(text, "call 5 of 'down'"), text);
  CHECK_MESSAGE(contains(text, "in function down ("), text);
  CHECK_MESSAGE(contains(text, "recursion_test.cpp:"), text);
  CHECK(step.run({i32(2)})[0].item<std::int32_t>() == 2);
}

TEST_CASE("random numbers in calls are others in each call, and the same again") {
  auto draws = [](int threads) {
    Graph g(7);
    const ValueType any{DType::f32, PartialShape{-1}};
    Function f = g.function("draw", {i32_scalar}, {any}, [&](Function& self, Output k) {
      Output here = random_uniform(g, {2});
      return cond(
          k > 0,
          [&] {
            return concat({self(k - 1), here, self(k - 2)});
          },
          [&] { return identity(here); });
    });
    Output all = concat({f(constant(g, 3)), f(constant(g, 3))});
    Cluster cluster = one_thread();
    cluster.threads = threads;
    Session s(g, cluster);
    return s.run({all})[0];
  };
  const Tensor once = draws(1), again = draws(2);
  REQUIRE(once.elements() > 20);
  std::set<float> different(once.data<float>(), once.data<float>() + once.elements());
  CHECK(different.size() == std::size_t(once.elements()));
  REQUIRE(again.elements() == once.elements());
  CHECK(std::equal(once.data<float>(), once.data<float>() + once.elements(), again.data<float>()));
}

TEST_CASE("with replicas each one's data is called for") {
  check_counts_of_replicas([](Graph& g, Output n) { return depth(g)(n); });
}

TEST_CASE("calls on a device with memory of its own give what they give on the CPU") {
  auto run = [](const char* device, std::uint64_t seed) {
    Graph g;
    Output k = called_with(g, "k"), x = placeholder<float>(g, {4}, "x"), y;
    {
      auto there = g.with_device(device);
      const ValueType row{DType::f32, PartialShape{4}};
      Function f =
          g.function("f", {f32_scalar, row}, {row}, [](Function& self, Output k, Output x) {
            return cond(
                k < 1.0f, [&] { return exp(x); },
                [&] { return self(k - 1.0f, x * 0.5f) + x * self(k - 2.0f, exp(x * -1.0f)); });
          });
      y = f(k, x);
    }
    Cluster cluster = one_thread();
    cluster.devices = {"CPU", "FAKE"};
    cluster.fake_seed = seed;
    cluster.soft_placement = false;
    Session s(g, cluster);
    auto step = s.compile({y}, {}, {k, x});
    std::vector<Tensor> out;
    for (float depth : {0.0f, 1.0f, 6.0f})
      out.push_back(
          step.run({Tensor::scalar(depth), Tensor::of<float>({4}, {0.5f, -1, 2, 0.25f})})[0]);
    return out;
  };
  const auto want = run("/cpu:0", 1);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    const auto got = run("/fake:0", seed);
    for (std::size_t i = 0; i < want.size(); ++i)
      CHECK(std::equal(want[i].data<float>(), want[i].data<float>() + 4, got[i].data<float>()));
  }
}

TEST_CASE("lists go down calls and come back, one for each call") {
  Graph g;
  Output n = integer(g);
  const ValueType list{DType::list, PartialShape::scalar()};
  Function f = g.function(
      "count_down", {i32_scalar, list}, {list}, [](Function& self, Output k, Output seen) {
        return cond(
            k > 0, [&] { return self(k - 1, list_push(seen, k)); }, [&] { return identity(seen); });
      });
  Output y =
      list_stack(f(n, list_empty(g, DType::i32, {.shape = PartialShape::scalar()})), DType::i32);
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {n});
  const Tensor out = step.run({i32(4)})[0];
  REQUIRE(out.elements() == 4);
  for (int k = 0; k < 4; ++k) CHECK(out.data<std::int32_t>()[k] == 4 - k);
}

TEST_CASE("values around functions that call each other go from call to call") {
  Graph g;
  Variable w = variable(g, "w", Tensor::scalar(3.0f));
  Output x = called_with(g), n = integer(g);
  int made = 0;
  // f(k) = w + (x + x) + h(k - 1), h(k) = x * f(k - 1), both 1 for k < 1.
  Output twice = x + x;
  Function f = g.function("f", {i32_scalar}, {f32_scalar}, [&](Function& f, Output k) {
    ++made;
    Output here = w + twice;
    Function h = g.function("h", {i32_scalar}, {f32_scalar}, [&](Function&, Output k) {
      return cond(
          k < 1, [&] { return constant(g, 1.0f); }, [&] { return x * f(k - 1) + here * 0.0f; });
    });
    return cond(
        k < 1, [&] { return constant(g, 1.0f); }, [&] { return here + h(k - 1); });
  });
  CHECK(made == 2);
  Output y = f(n), dw = value_or_throw(gradients(std::vector{y}, std::vector<Output>{w}))[0];
  std::function<float(int)> want = [&](int k) {
    return k < 1 ? 1 : 3 + 4 + (k < 2 ? 1 : 2 * want(k - 2));
  };
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({y, dw}, {}, {n, x});
  for (int k = 0; k < 7; ++k) {
    auto out = step.run({i32(k), Tensor::scalar(2.0f)});
    CHECK(out[0].item<float>() == want(k));
    float slope = 0;
    for (int i = k, factor = 1; i >= 1; i -= 2, factor *= 2) slope += float(factor);
    CHECK(out[1].item<float>() == slope);
  }
}

TEST_CASE("a function that is too large to be copied is called") {
  constexpr int kLevels = 18;
  Graph g;
  Output w = placeholder<double>(g, PartialShape::scalar(), "w");
  Function last =
      g.function("leaf", {f64_scalar}, {f64_scalar}, [&](Function&, Output x) { return x + w; });
  Function small = last;
  for (int level = 0; level < kLevels; ++level) {
    last = g.function("level", {f64_scalar}, {f64_scalar},
                      [&](Function&, Output x) { return last(last(x)); });
    if (level == 2) small = last;
  }
  Output y = last(constant(g, 1.0)), few = small(constant(g, 1.0));
  Session s(g, one_thread());
  const double copies = std::ldexp(1.0, kLevels);
  auto out = s.run({y, few}, {}, {{w, Tensor::scalar(0.5)}});
  CHECK(out[0].item<double>() == 1 + copies * 0.5);
  CHECK(out[1].item<double>() == 1 + 8 * 0.5);
  Output twice = std::get<1>(while_loop(
      std::tuple{constant(g, 0), constant(g, 0.0)}, [](Output i, Output) { return i < 2; },
      [&](Output i, Output sum) {
        return std::tuple{i + 1, last(sum)};
      }));
  CHECK(s.run({twice}, {}, {{w, Tensor::scalar(0.5)}})[0].item<double>() == copies);
}

TEST_CASE("a function that is too large to be copied is refused where it cannot be called") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0));
  Function last = g.function("leaf", {f64_scalar}, {f64_scalar},
                             [&](Function&, Output x) { return x + read(v); });
  for (int level = 0; level < 21; ++level)
    last = g.function("level", {f64_scalar}, {f64_scalar},
                      [&](Function&, Output x) { return last(last(x)); });
  Output y = last(constant(g, 1.0));
  Session s(g, one_thread());
  s.init();
  const Status refused = s.try_run({y}).status();
  CHECK(refused.code() == Code::resource_exhausted);
  CHECK_MESSAGE(contains(refused.text(), "nodes and edges of functions"), refused.text());
}
