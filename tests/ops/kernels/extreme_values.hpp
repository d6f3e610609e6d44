// What tests of large, infinite and missing numbers share.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "graph/gradients.hpp"
#include "tests/ops/api_interpreter.hpp"

namespace troupe::test::extreme {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

struct Root : nn::Module {
  using Module::Module;
};

// A type, numbers of that size in it, and how exactly they are computed with.
struct Large {
  DType dtype;
  double size, epsilon;
};

inline Output values_of(Graph& g, DType dtype, const Shape& shape,
                        const std::vector<double>& values) {
  return cast(constant(g, Tensor::of<double>(shape, values)), dtype);
}
inline std::vector<double> wide(Interpreter& run, Output x) {
  const Tensor t = run.run({cast<double>(x)})[0];
  return {t.span<double>().begin(), t.span<double>().end()};
}
inline void check_near(const std::vector<double>& got, const std::vector<double>& want,
                       double epsilon) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO("element " << i);
    CHECK(got[i] == doctest::Approx(want[i]).epsilon(epsilon));
  }
}
inline std::vector<Output> gradients_of(Output y, const std::vector<Output>& xs) {
  return value_or_throw(gradients(std::vector{y}, xs));
}

}  // namespace troupe::test::extreme
