// Sums, counts and products beside values of f16 and bf16, which hold few numbers: they are made in
// f32 and rounded once.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::vector<float> numbers(Graph& g, const Output& x) {
  Interpreter run(g);
  run.init();
  const Tensor t = run.run({cast<float>(x)})[0];
  return {t.data<float>(), t.data<float>() + t.elements()};
}
constexpr std::int64_t kMany = 1 << 18;
Tensor filled(std::int64_t n) {
  Tensor t = Tensor::make(DType::f32, Shape{n}).value();
  std::fill_n(t.mutable_data<float>(), n, 1.f);
  return t;
}
Output narrow_ones(Graph& g, std::int64_t n, DType dtype) {
  return cast(ones(g, {n}, DType::f32), dtype);
}

}  // namespace

TEST_CASE("dropout of few numbers keeps the mean, and not everything is dropped") {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const double rate : {0.3, 0.9, 0.99})
      for (const bool known : {true, false}) {
        CAPTURE(rate);
        Graph g;
        const Output ones = placeholder<float>(g, {known ? kMany : -1});
        const Output y = cast<float>(dropout(cast(ones, dtype), rate));
        const Tensor all = Interpreter(g).run({y}, {}, {{ones.node(), filled(kMany)}})[0];
        double kept = 0;
        for (const float each : all.span<float>()) kept += each != 0;
        // Within 5 deviations.
        const double wanted = (1 - rate) * double(kMany);
        CHECK(std::abs(kept - wanted) < 5 * std::sqrt(wanted));
      }
}

TEST_CASE("gradients of products that leave the range of f16 on their way are in it") {
  Graph g;
  const float inf = std::numeric_limits<float>::infinity();
  const auto slopes = [&](const std::vector<float>& values, const auto& product) {
    const Output x = cast(constant(g, values), DType::f16);
    return numbers(g, gradients(product(x), {x})[0]);
  };
  const auto whole = [](const Output& x) { return prod(x); };
  const auto segments = [&](const Output& x) {
    return sum(segment_prod(x, zeros(g, {4}, DType::i64)));
  };
  for (int i = 0; i < 2; ++i) {
    const auto of = [&](const std::vector<float>& x) {
      return i == 0 ? slopes(x, whole) : slopes(x, segments);
    };
    CHECK(of({300, 300, 1, 0}) == std::vector<float>{0, 0, 0, inf});
    CHECK(of({300, 300, 0.5f, 0.001f})[2] == doctest::Approx(90).epsilon(0.01));
  }
}

TEST_CASE("gradients of means and ties over more rows than f16 can count are not 0") {
  Graph g;
  const std::int64_t n = 70'000;
  const Output x = narrow_ones(g, n, DType::f16), ids = zeros(g, {n}, DType::i64);
  const auto each = [&](const Output& y) {
    const std::vector<float> dx = numbers(g, gradients(sum(cast<float>(y)) * 1024.f, {x})[0]);
    CHECK(dx[0] == doctest::Approx(1024.0 / double(n)).epsilon(0.01));
    CHECK(std::all_of(dx.begin(), dx.end(), [&](float v) { return v == dx[0]; }));
  };
  each(segment_mean(x, ids));
  each(unsorted_segment_mean(x, ids, constant(g, std::int64_t{1})));
  each(segment_max(x, ids));
  each(max(x));
}
