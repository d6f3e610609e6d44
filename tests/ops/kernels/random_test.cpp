// What the random ops draw.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

std::vector<double> draw(const std::string& op, AttrMap attrs, RandomState random) {
  attrs.emplace("shape", PartialShape{200'000});
  attrs.emplace("T", DType::f64);
  auto out = try_run(op, {}, attrs, {.random = random});
  REQUIRE_MESSAGE(out.ok(), out.status().text());
  auto values = (*out)[0].span<double>();
  return {values.begin(), values.end()};
}

// Mean, standard deviation, and the excess over what is expected of 200 000 draws: the tests run
// on fixed keys, so they cannot fail by bad luck.
void check_moments(const std::vector<double>& x, double mean, double deviation) {
  double sum = 0, squares = 0, neighbours = 0;
  for (double v : x) sum += v;
  const double m = sum / double(x.size());
  for (double v : x) squares += (v - m) * (v - m);
  for (std::size_t i = 1; i < x.size(); ++i) neighbours += (x[i] - m) * (x[i - 1] - m);
  CHECK(std::abs(m - mean) < 5 * deviation / std::sqrt(double(x.size())));
  CHECK(std::sqrt(squares / double(x.size())) == doctest::Approx(deviation).epsilon(0.01));
  CHECK(std::abs(neighbours / squares) < 0.012);
}

}  // namespace

TEST_CASE("uniform numbers fill their range evenly") {
  auto x = draw("RandomUniform", {{"low", 2.0}, {"high", 6.0}}, {.key = 11, .run = 1});
  check_moments(x, 4, 4 / std::sqrt(12.0));
  CHECK(*std::min_element(x.begin(), x.end()) >= 2);
  CHECK(*std::max_element(x.begin(), x.end()) < 6);
}

TEST_CASE("normal numbers have the mean and the deviation asked for") {
  check_moments(draw("RandomStandardNormal", {}, {.key = 12, .run = 1}), 0, 1);
  check_moments(
      draw("RandomStandardNormal", {{"mean", 3.0}, {"stddev", 0.5}}, {.key = 13, .run = 1}), 3,
      0.5);
}

TEST_CASE("truncated normal numbers stay within two deviations") {
  auto x = draw("TruncatedNormal", {{"stddev", 10.0}}, {.key = 14, .run = 1});
  check_moments(x, 0, 8.796);  // of a normal cut at two deviations
  for (double v : x) REQUIRE(std::abs(v) < 20);
}

TEST_CASE("uniform integers hit every value of a small range") {
  auto out = try_run("RandomUniformInt", {},
                     {{"T", DType::i64}, {"low", -2}, {"high", 3}, {"shape", PartialShape{5'000}}},
                     {.random = {.key = 15, .run = 1}});
  REQUIRE(out.ok());
  auto values = (*out)[0].span<std::int64_t>();
  std::multiset<std::int64_t> seen(values.begin(), values.end());
  CHECK(seen.size() == 5'000);
  for (std::int64_t v = -2; v < 3; ++v) CHECK(std::abs(int(seen.count(v)) - 1'000) < 150);
}

TEST_CASE("another key, another run: other numbers; the same: the same") {
  auto a = draw("RandomUniform", {}, {.key = 1, .run = 1});
  CHECK(a == draw("RandomUniform", {}, {.key = 1, .run = 1}));
  CHECK(a != draw("RandomUniform", {}, {.key = 2, .run = 1}));
  CHECK(a != draw("RandomUniform", {}, {.key = 1, .run = 2}));
}

TEST_CASE("numbers drawn like a tensor are those drawn of its shape") {
  const AttrMap range{{"low", 2.0}, {"high", 6.0}};
  const RandomState random{.key = 1, .run = 1};
  auto like = try_run("RandomUniformLike", {Tensor::make(DType::f64, Shape{200'000}).value()},
                      range, {.random = random});
  REQUIRE_MESSAGE(like.ok(), like.status().text());
  const auto values = (*like)[0].span<double>();
  CHECK(std::vector<double>(values.begin(), values.end()) == draw("RandomUniform", range, random));
}

}  // namespace troupe::test
