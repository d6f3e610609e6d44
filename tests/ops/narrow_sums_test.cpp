// Sums, counts and products beside values of f16 and bf16, which hold few numbers: they are made in
// f32 and rounded once.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>

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
// f32 [50,4].
Output waves(Graph& g, int first) {
  std::vector<float> values;
  for (int i = 0; i < 200; ++i) values.push_back(3 * std::sin(float(first + i * i)));
  return constant(g, Tensor::of<float>(Shape{50, 4}, values));
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

TEST_CASE("what the API makes of several ops is rounded once in f16 and bf16") {
  using Made = std::function<Output(const Output&, const Output&)>;
  const std::map<std::string, Made> all = {
      {"mish", [](const Output& x, const Output&) { return mish(x); }},
      {"hard_swish", [](const Output& x, const Output&) { return hard_swish(x); }},
      {"hard_sigmoid", [](const Output& x, const Output&) { return hard_sigmoid(x); }},
      {"glu", [](const Output& x, const Output&) { return glu(x); }},
      {"logaddexp", [](const Output& x, const Output& y) { return logaddexp(x, y); }},
      {"sigmoid_cross_entropy",
       [](const Output& x, const Output& y) { return sigmoid_cross_entropy(x, y); }},
      {"hinge", [](const Output& x, const Output& y) { return hinge(x, y); }},
      {"mean_absolute_error",
       [](const Output& x, const Output& y) { return mean_absolute_error(x, y); }},
      {"triplet_margin",
       [](const Output& x, const Output& y) { return triplet_margin(x, y, reverse(x)); }},
  };
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const auto& [name, f] : all) {
      const std::string what = name;
      INFO(what << " of " << dtype_name(dtype));
      Graph g;
      const Output x = cast(waves(g, 1), dtype), y = cast(waves(g, 5), dtype);
      const Output once = cast(f(cast<float>(x), cast<float>(y)), dtype);
      CHECK(f(x, y).dtype() == dtype);
      CHECK(numbers(g, f(x, y)) == numbers(g, once));
    }
}

TEST_CASE("dropout of f16 and bf16 scales in f32 and rounds once") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    CAPTURE(dtype_name(dtype));
    Graph g;
    const Output x = cast(waves(g, 2), dtype);
    const std::vector<float> y = numbers(g, dropout(x, 0.3)),
                             want = numbers(g, cast(cast<float>(x) * (1 / 0.7), dtype));
    for (std::size_t i = 0; i < y.size(); ++i)
      if (y[i] != 0) CHECK(y[i] == want[i]);
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
