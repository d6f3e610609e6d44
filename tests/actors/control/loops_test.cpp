// Loops as a client writes them: what is computed, in one process and over two.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ops/api.hpp"
#include "tests/actors/support/replicas.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/contains.hpp"
#include "tests/net/raw_client.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Output scalar_input(Graph& g, const char* name = "x") {
  return placeholder<float>(g, PartialShape::scalar(), name);
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.status().text();
  }
  return "";
}

}  // namespace

TEST_CASE("a loop multiplies as often as it is told, also not at all") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = scalar_input(g), n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
    auto [i, power] = while_loop(
        std::tuple{constant(g, 0), constant(g, 1.0f)}, [&](Output i, Output) { return i < n; },
        [&](Output i, Output p) {
          return std::tuple{i + 1, p * x};
        });
    PlacedSession s(g, place);
    auto step = s->compile({i, power, power + x}, {}, {x, n});
    for (std::int32_t trips : {0, 1, 5, 20, 0, -2}) {
      auto out = step.run({Tensor::scalar(2.0f), Tensor::scalar(trips)});
      const int times = std::max(trips, 0);
      CHECK(out[0].item<std::int32_t>() == times);
      CHECK(out[1].item<float>() == std::ldexp(1.0f, times));
      CHECK(out[2].item<float>() == std::ldexp(1.0f, times) + 2);
    }
  }
}

TEST_CASE("loops nest, hold branches and calls, and stand in branches and functions") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
    Function twice =
        function(g, "twice", {{DType::i32, PartialShape::scalar()}},
                 {{DType::i32, PartialShape::scalar()}}, [](Function&, Output k) { return k + k; });
    // For i below n, for j below i: the total grows by 1, and where it is even by twice j.
    auto sum = [&](Output limit) {
      return std::get<1>(while_loop(
          std::tuple{constant(g, 0), constant(g, 0)}, [&](Output i, Output) { return i < limit; },
          [&](Output i, Output total) {
            auto [j, inner] = while_loop(
                std::tuple{constant(g, 0), total}, [&](Output j, Output) { return j < i; },
                [&](Output j, Output t) {
                  Output even = mod(t, constant(g, 2)) == 0;
                  Output more = cond(
                      even, [&] { return twice(j); }, [&] { return constant(g, 0); });
                  return std::tuple{j + 1, t + 1 + more};
                });
            return std::tuple{i + 1, inner};
          }));
    };
    Output in_branch = cond(
        n > 3, [&] { return sum(n); }, [&] { return -n; });
    PlacedSession s(g, place);
    auto step = s->compile({sum(n), in_branch}, {}, {n});
    for (std::int32_t k : {0, 1, 2, 3, 4, 7}) {
      std::int32_t total = 0;
      for (std::int32_t i = 0; i < k; ++i)
        for (std::int32_t j = 0; j < i; ++j) total += 1 + (total % 2 == 0 ? 2 * j : 0);
      auto out = step.run({Tensor::scalar(k)});
      CHECK(out[0].item<std::int32_t>() == total);
      CHECK(out[1].item<std::int32_t>() == (k > 3 ? total : -k));
    }
  }
}

TEST_CASE("a loop reads variables as they are before it, whoever writes them meanwhile") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable w = variable(g, "w", Tensor::scalar(3.0f));
    Output total = std::get<1>(while_loop(
        std::tuple{constant(g, 0), constant(g, 0.0f)}, [&](Output i, Output) { return i < 4; },
        [&](Output i, Output t) {
          return std::tuple{i + 1, t + w.value() + read(w) - read(w)};
        }));
    Op write = assign_add(w, constant(g, 1.0f));
    PlacedSession s(g, place);
    s->init();
    CHECK(s->run({total}, {write})[0].item<float>() == 12);
    CHECK(s->run({total})[0].item<float>() == 16);
  }
}

TEST_CASE("a shape may change where the loop says so") {
  Graph g;
  Output x = constant(g, Tensor::of<float>(Shape{1}, {1.0f}));
  auto grow = [&](LoopOptions options) {
    return while_loop(
        x, [&](Output v) { return size(v) < 40; },
        [&](Output v) {
          return concat({v, v});
        },
        options);
  };
  const std::string fixed = error_of([&] { grow({}); });
  CHECK_MESSAGE(contains(fixed, "variable 0 of the loop is f32[1]"), fixed);
  CHECK_MESSAGE(contains(fixed, "loops_test.cpp"), fixed);
  Output grown = grow({.shapes = {{-1}}});
  CHECK(grown.shape() == PartialShape{-1});
  Session s(g, one_thread());
  CHECK(s.run({grown})[0].shape() == Shape{64});
}

TEST_CASE("a failure in a loop names the node, its line and the iteration") {
  Graph g;
  Output x = scalar_input(g);
  Output y = while_loop(
      x, [&](Output v) { return v < 10.0f; },
      [&](Output v) {
        auto checked = g.with_control({assert_(v < 4.0f, {.message = "it has grown"})});
        return v + 1.0f;
      });
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {x});
  const std::string text = step.try_run({Tensor::scalar(1.5f)}).status().text();
  CHECK_MESSAGE(contains(text, "it has grown"), text);
  CHECK_MESSAGE(contains(text, "in iteration 3 of 'while'"), text);
  CHECK_MESSAGE(contains(text, "while/body/Assert"), text);
  CHECK_MESSAGE(contains(text, "loops_test.cpp"), text);
  CHECK(step.run({Tensor::scalar(20.0f)})[0].item<float>() == 20);
}

TEST_CASE("ten million iterations take no memory [slow]") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output i = while_loop(
      constant(g, 0), [&](Output i) { return i < n; }, [](Output i) { return i + 1; });
  Session s(g, one_thread());
  auto step = s.compile({i}, {}, {n});
  auto count_to = [&](std::int32_t n) {
    CHECK(step.run({Tensor::scalar(n)})[0].item<std::int32_t>() == n);
    return testing::resident_bytes();
  };
  const std::uint64_t before = count_to(100'000);
  CHECK(count_to(10'000'000) < before + (std::uint64_t{1} << 20));
}

TEST_CASE("random numbers in a loop are others in each iteration, and the same again") {
  auto draws = [](int threads) {
    Graph g(7);
    Output all = std::get<1>(while_loop(
        std::tuple{constant(g, 0), constant(g, Tensor::of<float>(Shape{0}, {}))},
        [&](Output i, Output) { return i < 10; },
        [&](Output i, Output seen) {
          return std::tuple{i + 1, concat({seen, random_uniform(g, {3})})};
        },
        {.shapes = {{}, {-1}}}));
    Cluster cluster = one_thread();
    cluster.threads = threads;
    Session s(g, cluster);
    return s.run({all})[0];
  };
  const Tensor once = draws(1), again = draws(2);
  REQUIRE(once.elements() == 30);
  std::set<float> different(once.data<float>(), once.data<float>() + 30);
  CHECK(different.size() == 30);
  CHECK(std::equal(once.data<float>(), once.data<float>() + 30, again.data<float>()));
}

TEST_CASE("with replicas a loop over each one's data runs for each") {
  check_counts_of_replicas([](Graph& g, Output n) {
    return while_loop(
        constant(g, 0), [&](Output v) { return v < n; }, [&](Output v) { return v + 1; });
  });
}

TEST_CASE("sides of a branch in a loop take as long as they like") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
    Output x = std::get<1>(while_loop(
        std::tuple{constant(g, 0), constant(g, 1.0f)}, [&](Output i, Output) { return i < n; },
        [&](Output i, Output x) {
          Output late = x;
          for (int k = 0; k < 8; ++k) late = late * 1.0f;
          Output y = cond(
              mod(i, constant(g, 2)) == 1,
              [&] {
                Output v = late;
                for (int k = 0; k < 8; ++k) v = v * 1.5f;
                return v;
              },
              [&] { return x + 1.0f; });
          return std::tuple{i + 1, y};
        }));
    PlacedSession s(g, place);
    auto step = s->compile({x}, {}, {n});
    for (std::int32_t trips : {1, 2, 3, 6}) {
      float wanted = 1;
      for (int i = 0; i < trips; ++i) {
        if (i % 2 == 0) wanted += 1;
        for (int k = 0; k < 8 && i % 2 == 1; ++k) wanted *= 1.5f;
      }
      CHECK(step.run({Tensor::scalar(trips)})[0].item<float>() == wanted);
    }
  }
}

TEST_CASE("loops of replicas wait for calls, hold branches, and meet in a mean") {
  Graph g;
  auto batches = data::digits(64).batch(8).repeat().outputs(g);
  Output n = cast<std::int32_t>(max(batches[1]));
  Function twice =
      function(g, "twice", {{DType::i32, PartialShape::scalar()}},
               {{DType::i32, PartialShape::scalar()}}, [](Function&, Output k) { return k + k; });
  Output counted = while_loop(
      constant(g, 0), [&](Output v) { return v < n; },
      [&](Output v) {
        auto after = g.with_control({twice.call_op({v})});
        return cond(
            mod(v, constant(g, 2)) == 0, [&] { return v + 1; }, [&] { return v + 1; });
      });
  Output both = replica_mean({cast<float>(counted)}), wanted = replica_mean({cast<float>(n)});
  Cluster cluster = one_thread();
  cluster.replicas = 2;
  Session s(g, cluster);
  auto step = s.compile({both, wanted}, {});
  auto out = step.run();
  CHECK(out[0].item<float>() == out[1].item<float>());
}

TEST_CASE("a loop that fails to be built in a body leaves nothing there") {
  Graph g;
  Output x = scalar_input(g);
  Output y = cond(
      x > 0.0f,
      [&] {
        CHECK(contains(error_of([&] {
                         while_loop(
                             x, [&](Output v) { return v < 10.0f; },
                             [&](Output v) { return cast<double>(v); });
                       }),
                       "variable 0"));
        return x + 1.0f;
      },
      [&] { return x; });
  CHECK(g.def().functions.size() == 2);
  Session s(g, one_thread());
  CHECK(s.run({y}, {}, {{x, Tensor::scalar(2.0f)}})[0].item<float>() == 3);
}
