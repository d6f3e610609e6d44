// Loops and their gradients on a device with memory of its own: what they save is there, too.
#include <doctest/doctest.h>

#include "actors/client/session.hpp"
#include "apps/troupe.hpp"
#include "tests/actors/support/gradient_check.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Make = std::function<Output(Graph&, Output n, Output x)>;

struct Where {
  const char* device = "/cpu:0";  // empty: as nodes say
  std::uint64_t seed = 1;         // of the device's delays
  std::uint64_t memory = 0;       // of the device; 0: plenty
};

Cluster cluster_for(const Where& where) {
  Cluster cluster;
  cluster.threads = 1;
  cluster.devices = {"CPU", "FAKE"};
  cluster.fake_seed = where.seed;
  cluster.fake_memory = where.memory;
  cluster.soft_placement = false;  // or a missing kernel would go unnoticed
  return cluster;
}

// y, dy/dx and, where asked for, the product of the Hessian with a vector.
std::vector<Tensor> compute(const Make& make, const Where& where, bool twice) {
  Graph g(3);
  auto there = g.with_device(where.device);
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<float>(g, {3}, "x");
  Output y = sum(make(g, n, x));
  std::vector<Output> fetches{y, gradient_of(y, x)};
  if (twice)
    fetches.push_back(
        gradient_of(sum(fetches[1] * constant(g, Tensor::of<float>({3}, {0.5, -1.5, 2.0}))), x));
  Session s(g, cluster_for(where));
  auto step = s.compile(fetches, {}, {n, x});
  std::vector<Tensor> all;
  for (std::int32_t trips : {0, 1, 4})
    for (Tensor& t : step.run({Tensor::scalar(trips), Tensor::of<float>({3}, {0.3f, -0.7f, 1.9f})}))
      all.push_back(std::move(t));
  return all;
}

void compare(const char* name, const Make& make, bool twice = true) {
  INFO(name);
  const std::vector<Tensor> want = compute(make, {}, twice);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    const std::vector<Tensor> got = compute(make, {.device = "/fake:0", .seed = seed}, twice);
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      CHECK_MESSAGE(Tensor::same(got[i], want[i]), got[i].text(), " is not ", want[i].text());
    }
  }
}

}  // namespace

TEST_CASE("a loop on a device with memory of its own has the gradient that it has on the CPU") {
  for (const LoopSave save : {LoopSave::values, LoopSave::variables})
    compare("plain", [save](Graph& g, Output n, Output x) {
      return loop_of(g, n, x, [&](Output, Output v) { return sin(v) * tanh(v * x) + v * 0.5f; },
                     {.save = save});
    });
  compare("a branch in it", [](Graph& g, Output n, Output x) {
    return loop_of(g, n, x, [&](Output i, Output v) {
      return cond(
          mod(i, constant(g, 2)) == 0, [&] { return exp(v * 0.3f) * x; },
          [&] {
            Output w = sin(v) * v;
            return w * w;
          });
    });
  });
  compare("a loop in it", [](Graph& g, Output n, Output x) {
    return loop_of(g, n, x, [&](Output i, Output v) {
      Output w = sin(v);
      return loop_of(g, i, w, [&](Output, Output u) { return tanh(u * w) * 0.7f + x * u * 0.1f; });
    });
  });
  compare("lists of the program's own", [](Graph& g, Output n, Output x) {
    Output first = list_empty(g, DType::f32, {.shape = {3}});
    auto [i, v, list] = while_loop(
        std::tuple{constant(g, 0), x, first}, [&](Output i, Output, Output) { return i < n + 1; },
        [&](Output i, Output v, Output list) {
          Output next = sin(v) * x;
          return std::tuple{i + 1, next, list_push(list, next * v)};
        });
    Output last = list_get(list, list_length(list) - 1, DType::f32, {.shape = {3}});
    return sum(list_stack(list, DType::f32, {.shape = {3}})) * last + v;
  });
  compare("scan", [](Graph&, Output, Output x) {
    auto [last, all] = scan(x, sum(x), [](Output h, Output x) {
      Output next = tanh(h * x) + sin(h);
      return std::pair{next, next * next * x};
    });
    return all * last;
  });
}

TEST_CASE("a loop over a device with memory of its own and the CPU has its gradient") {
  auto make = [](const char* there) {
    return [there](Graph& g, Output n, Output x) {
      return loop_of(g, n, x, [&](Output, Output v) {
        auto other = g.with_device(there);
        Output w = tanh(v * x);
        auto back = g.with_device("/cpu:0");
        return sin(w) * v + w;
      });
    };
  };
  const std::vector<Tensor> want = compute(make("/cpu:0"), {.device = ""}, true);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    const std::vector<Tensor> got = compute(make("/fake:0"), {.device = "", .seed = seed}, true);
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      CHECK_MESSAGE(Tensor::same(got[i], want[i]), got[i].text(), " is not ", want[i].text());
  }
}

TEST_CASE("values that a loop saved leave a device that is nearly full") {
  constexpr std::int64_t kElements = 64 * 1024;  // 256 KiB each
  auto run = [&](const char* device, std::uint64_t memory, bool branch) {
    Graph g(3);
    auto there = g.with_device(device);
    Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
    Output x = placeholder<float>(g, {kElements}, "x");
    Output y = sum(loop_of(g, n, x, [&](Output i, Output v) {
      Output w = tanh(v * x);
      if (!branch) return w * v + 0.1f;
      return cond(
          mod(i, constant(g, 3)) != 0, [&] { return sin(w) * w; }, [&] { return w + 0.1f; });
    }));
    Output dx = gradient_of(y, x);
    Session s(g, cluster_for({.memory = memory}));
    auto step = s.compile({y, dx}, {}, {n, x});
    Tensor fed = value_or_throw(Tensor::make(DType::f32, {kElements}));
    for (std::int64_t i = 0; i < kElements; ++i)
      fed.mutable_data<float>()[i] = float(i % 101) / 50 - 1;
    std::vector<Tensor> all;
    for (const std::int32_t times : {3, 60, 5})
      for (Tensor& t : step.run({Tensor::scalar(times), fed})) all.push_back(std::move(t));
    return all;
  };
  for (const bool branch : {false, true}) {
    CAPTURE(branch);
    const std::vector<Tensor> want = run("/cpu:0", 0, branch);
    // Two values are saved of each of 60 iterations: 30 MiB.
    const std::vector<Tensor> got = run("/fake:0", std::uint64_t{16} << 20, branch);
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      CHECK(Tensor::same(got[i], want[i]));
    }
  }
}
