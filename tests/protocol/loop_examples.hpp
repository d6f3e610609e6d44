// Loops over three devices, each a case of its own. Random numbers aside, they make the same values
// in every run.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ops/api.hpp"

namespace troupe::test::loops {

using Devices = std::vector<std::string>;

// What a test builds: values to fetch.
using Make = std::function<std::vector<Output>(Graph&, const Devices&)>;

template <class F>
auto on(Graph& g, const std::string& device, F&& make) {
  auto there = g.with_device(device);
  return make();
}

struct LoopExample {
  const char* name;
  Make make;
};

inline std::vector<Output> alternating(Graph& g, const Devices& d, std::int64_t window) {
  auto [i, x] = while_loop(
      std::tuple{constant(g, 0), constant(g, 1.5)}, [&](Output i, Output) { return i < 25; },
      [&](Output i, Output x) {
        Output there = on(g, d[1], [&] { return sin(x) * 2.0; });
        return std::tuple{i + 1, there + x};
      },
      {.window = window});
  return {i, x};
}

// One stage on each device: no value goes back.
inline std::vector<Output> pipeline(Graph& g, const Devices& d, std::int64_t window) {
  auto [i, a, sum] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0.25), constant(g, 0.0)},
      [&](Output i, Output, Output) { return i < 30; },
      [&](Output i, Output a, Output sum) {
        Output next = on(g, d[1], [&] { return cos(a) + 0.5; });
        Output total = on(g, d[2], [&] { return sum * 0.75 + next; });
        return std::tuple{i + 1, next, total};
      },
      {.window = window});
  return {i, sum, a};
}

// While the norm of x, on another device, is above a bound here.
inline std::vector<Output> condition_elsewhere(Graph& g, const Devices& d) {
  Output x = on(g, d[1], [&] { return constant(g, Tensor::of<double>({3}, {8, -4, 2})); });
  Output bound = constant(g, 0.01);
  Output last = while_loop(
      x, [&](Output x) { return on(g, d[1], [&] { return sum(x * x); }) > bound; },
      [&](Output x) { return on(g, d[1], [&] { return x * 0.5; }); });
  return {last, on(g, d[2], [&] { return last + 1.0; })};
}

inline std::vector<Output> swapped(Graph& g, const Devices& d) {
  auto [i, a, b] = while_loop(
      std::tuple{constant(g, 0), constant(g, 1.0), constant(g, 2.0)},
      [&](Output i, Output, Output) { return i < 7; },
      [&](Output i, Output a, Output b) {
        Output sum = on(g, d[1], [&] { return a + b; });
        return std::tuple{i + cast(sum * 0.0, DType::i32) + 1, b, a};
      });
  return {i, a, b};
}

// The inner loop alone elsewhere, with as many iterations as the outer one says, at first none.
inline std::vector<Output> inner_elsewhere(Graph& g, const Devices& d) {
  auto [i, x] = while_loop(
      std::tuple{constant(g, 0), constant(g, 1.0)}, [&](Output i, Output) { return i < 6; },
      [&](Output i, Output x) {
        auto inner = [&] {
          return while_loop(
              std::tuple{constant(g, 0), x}, [&](Output j, Output) { return j < i; },
              [&](Output j, Output y) {
                return std::tuple{j + 1, y * 1.25};
              });
        };
        return std::tuple{i + 1, std::get<1>(on(g, d[1], inner)) - 0.5};
      });
  return {i, x};
}

// Both loops over two devices, not the same two; branches over the third.
inline std::vector<Output> nest(Graph& g, const Devices& d, std::int64_t window) {
  auto [i, x] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0.5)}, [&](Output i, Output) { return i < 8; },
      [&](Output i, Output x) {
        Output odd = mod(i, constant(g, 2)) == 1;
        Output deep = cond(
            odd,
            [&] {
              return std::get<1>(while_loop(
                  std::tuple{constant(g, 0), x}, [&](Output j, Output) { return j < i; },
                  [&](Output j, Output y) {
                    Output there = on(g, d[2], [&] { return y * y; });
                    return std::tuple{j + 1, on(g, d[1], [&] { return sin(there) + y; })};
                  },
                  {.window = window}));
            },
            [&] { return on(g, d[1], [&] { return x * 0.5; }); });
        return std::tuple{i + 1, deep + on(g, d[1], [&] { return x; })};
      },
      {.window = window});
  return {i, x};
}

inline std::vector<Output> branches_elsewhere(Graph& g, const Devices& d) {
  auto [i, x] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0.5)}, [&](Output i, Output) { return i < 12; },
      [&](Output i, Output x) {
        Output next = cond(
            mod(i, constant(g, 3)) == 0, [&] { return on(g, d[1], [&] { return x * 3.0; }); },
            [&] { return on(g, d[2], [&] { return x - 0.125; }); });
        return std::tuple{i + 1, next};
      });
  return {i, x};
}

// A loop on a branch that is not taken, over two devices, beside one that is.
inline std::vector<Output> dead(Graph& g, const Devices& d) {
  auto loop = [&](Output x) {
    return std::get<1>(while_loop(
        std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < 4; },
        [&](Output i, Output x) {
          return std::tuple{i + 1, on(g, d[1], [&] { return x + x; })};
        }));
  };
  Output x = constant(g, 1.5);
  Output never = cond(
      x > 2.0, [&] { return loop(x); }, [&] { return x; });
  Output always = cond(
      x < 2.0, [&] { return loop(x); }, [&] { return x; });
  return {never, always};
}

inline std::vector<Output> no_iteration(Graph& g, const Devices& d) {
  auto [i, x] = while_loop(
      std::tuple{constant(g, 5), constant(g, 0.5)}, [&](Output i, Output) { return i < 5; },
      [&](Output i, Output x) {
        return std::tuple{i + 1, on(g, d[1], [&] { return x * 3.0; })};
      });
  return {i, x};
}

inline std::vector<Output> arrays(Graph& g, const Devices& d) {
  Output xs = constant(g, Tensor::of<double>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  auto [last, sums] =
      scan(xs, constant(g, Tensor::of<double>({2}, {0, 0})), [&](Output h, Output x) {
        Output next = on(g, d[1], [&] { return h * 0.5 + x; });
        return std::pair{next, next * 2.0};
      });
  return {last, sums};
}

inline std::vector<Output> draws(Graph& g, const Devices& d) {
  auto [i, x] = while_loop(
      std::tuple{constant(g, 0), constant(g, Tensor::of<double>({3}, {0, 0, 0}))},
      [&](Output i, Output) { return i < 5; },
      [&](Output i, Output x) {
        Output drawn = on(g, d[1], [&] { return random_uniform(g, {3}, {.dtype = DType::f64}); });
        return std::tuple{i + 1, x * 2.0 + drawn};
      });
  return {i, x};
}

inline std::vector<Output> slope(Graph& g, const Devices& d) {
  Output x = constant(g, 0.75);
  Output y = std::get<1>(while_loop(
      std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < 4; },
      [&](Output i, Output y) {
        Output there = on(g, d[1], [&] { return sin(y) * x; });
        return std::tuple{i + 1, there * y + 0.5};
      }));
  Output dx = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
  Output second = value_or_throw(gradients(std::vector{dx}, std::vector{x}))[0];
  return {y, dx, second};
}

inline const std::vector<LoopExample>& loop_examples() {
  static const std::vector<LoopExample> all{
      {"alternating", [](Graph& g, const Devices& d) { return alternating(g, d, 10); }},
      {"alternating, window 1", [](Graph& g, const Devices& d) { return alternating(g, d, 1); }},
      {"pipeline", [](Graph& g, const Devices& d) { return pipeline(g, d, 10); }},
      {"pipeline, window 2", [](Graph& g, const Devices& d) { return pipeline(g, d, 2); }},
      {"a condition elsewhere", condition_elsewhere},
      {"swapped", swapped},
      {"an inner loop elsewhere", inner_elsewhere},
      {"nest", [](Graph& g, const Devices& d) { return nest(g, d, 10); }},
      {"nest, window 1", [](Graph& g, const Devices& d) { return nest(g, d, 1); }},
      {"branches elsewhere", branches_elsewhere},
      {"dead", dead},
      {"no iteration", no_iteration},
      {"arrays", arrays},
      {"draws", draws},
      {"slope", slope},
  };
  return all;
}

}  // namespace troupe::test::loops
