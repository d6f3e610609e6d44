// Models in plain loops, and what is compared with them: values, and the slopes of their loss.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/hash.hpp"
#include "tests/ops/api_interpreter.hpp"

namespace troupe::test {

using Numbers = std::vector<double>;

// Numbers in [-1, 1), the same for the same seed.
inline Numbers draw(std::uint64_t seed, std::int64_t n) {
  Random random(seed);
  Numbers out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(2 * random.uniform() - 1);
  return out;
}
inline Tensor tensor(const Shape& shape, const Numbers& values) {
  return Tensor::of<double>(shape, values);
}
inline Numbers numbers(const Tensor& t) {
  return {t.span<double>().begin(), t.span<double>().end()};
}
inline double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// c [m,n] = a [m,k] b [k,n] (+ bias [n])
inline Numbers product(const Numbers& a, const Numbers& b, std::size_t m, std::size_t k,
                       std::size_t n, const Numbers& bias = {}) {
  Numbers c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = bias.empty() ? 0 : bias[j];
      for (std::size_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  return c;
}

inline void check_near(const Tensor& got, const Numbers& want, double tolerance = 1e-12) {
  REQUIRE(got.elements() == std::int64_t(want.size()));
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO("element " << i);
    CHECK(std::abs(got.span<double>()[i] - want[i]) <=
          tolerance * std::max(1.0, std::abs(want[i])));
  }
}

// A layer against `model`, which computes the same of the same inputs: its values, and its
// gradients against the slopes of `model`. The loss is the sum of the outputs times fixed weights.
// `inputs` are x and the parameters, in the order in which both sides take them.
struct Compared {
  Graph& g;
  Output y;
  std::vector<Output> inputs;
  std::vector<Numbers> values;                                // of the inputs
  std::function<Numbers(const std::vector<Numbers>&)> model;  // the elements of y

  void check(Interpreter& run, const std::map<NodeId, Tensor>& feeds = {}) const {
    const Numbers want = model(values);
    const Numbers weights = draw(99, std::int64_t(want.size()));
    const Tensor got = run.run({y}, {}, feeds)[0];
    check_near(got, want);
    Output w = constant(g, tensor(got.shape(), weights));
    Output loss = sum(y * w);
    const auto slopes = value_or_throw(gradients(std::span(&loss, 1), inputs));
    const auto slope = [&](std::size_t i, std::size_t k) {
      const double step = 1e-5;
      double difference = 0;
      for (double sign : {1.0, -1.0}) {
        std::vector<Numbers> moved = values;
        moved[i][k] += sign * step;
        const Numbers at = model(moved);
        for (std::size_t j = 0; j < at.size(); ++j) difference += sign * weights[j] * at[j];
      }
      return difference / (2 * step);
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      INFO("gradient of input " << i);
      REQUIRE(!slopes[i].empty());
      Numbers all;
      for (std::size_t k = 0; k < values[i].size(); ++k) all.push_back(slope(i, k));
      check_near(run.run({slopes[i]}, {}, feeds)[0], all, 1e-8);
    }
  }
};

// Gives variables values.
inline void set(Interpreter& run, const std::vector<Variable>& variables,
                const std::vector<Numbers>& values) {
  std::vector<Op> writes;
  for (std::size_t i = 0; i < variables.size(); ++i)
    writes.push_back(assign(
        variables[i],
        constant(variables[i].handle().graph(), tensor(variables[i].shape().shape(), values[i]))));
  run.run({}, writes);
}

}  // namespace troupe::test
