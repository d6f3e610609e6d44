// The ends of what random ops draw from, in every float type.
#include <doctest/doctest.h>

#include <cmath>

#include "ops/api.hpp"
#include "tests/ops/kernels/conformance.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

std::vector<double> draw(const std::string& op, DType dtype, AttrMap attrs,
                         std::int64_t count = 8192) {
  attrs.emplace("shape", PartialShape{count});
  attrs.emplace("T", dtype);
  auto drawn = try_run(op, {}, attrs, {.random = {.key = 21, .run = 1}});
  REQUIRE_MESSAGE(drawn.ok(), drawn.status().text());
  auto wide = try_run("Cast", {(*drawn)[0]}, {{"from", dtype}, {"to", DType::f64}});
  REQUIRE(wide.ok());
  auto values = (*wide)[0].span<double>();
  return {values.begin(), values.end()};
}

struct Bounds {
  DType dtype;
  double low, high;
};

std::string refusal(const std::string& op, DType dtype, AttrMap attrs) {
  GraphBuilder g(ops::builtin().ops);
  NodeSpec node{.op = op, .attrs = std::move(attrs)};
  if (op == "RandomUniformLike") {
    node.inputs = {g.add("Placeholder", {}, {{"T", dtype}, {"shape", PartialShape{2}}})};
  } else {
    node.attrs.emplace("T", dtype);
    node.attrs.emplace("shape", PartialShape{2});
  }
  auto added = g.try_add(std::move(node));
  return added.ok() ? "accepted" : added.status().text();
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("uniform numbers are never below `low` and always below `high`") {
  const Bounds all[] = {
      {DType::bf16, 0, 1},          {DType::f16, 0, 1},
      {DType::bf16, 1000.5, 1020},  {DType::f16, 1000.3, 1001.2},
      {DType::bf16, -0.3, 0.7},     {DType::f16, -0.3, 0.7},
      {DType::f32, 1e6, 1e6 + 1},   {DType::f32, -0.3, 0.7},
      {DType::f64, 1e15, 1e15 + 1}, {DType::f32, 0.7, std::nextafter(0.7, 1.0) + 1e-7},
  };
  for (const Bounds& b : all) {
    INFO(dtype_name(b.dtype) << " in [" << b.low << ", " << b.high << ")");
    const auto values = draw("RandomUniform", b.dtype, {{"low", b.low}, {"high", b.high}});
    CHECK(*std::min_element(values.begin(), values.end()) >= b.low);
    CHECK(*std::max_element(values.begin(), values.end()) < b.high);
  }
}

TEST_CASE("uniform numbers fill a range that is wider than the largest number") {
  const Bounds all[] = {{DType::f32, -3e38, 3e38},
                        {DType::f32, -3.4e38, 1},
                        {DType::f64, -1.7e308, 1.7e308},
                        {DType::bf16, -3e38, 3e38},
                        {DType::f16, -65504, 65504}};
  for (const Bounds& b : all) {
    INFO(dtype_name(b.dtype) << " in [" << b.low << ", " << b.high << ")");
    int quarters[4] = {};
    for (double x : draw("RandomUniform", b.dtype, {{"low", b.low}, {"high", b.high}})) {
      REQUIRE(std::isfinite(x));
      REQUIRE(x >= b.low);
      REQUIRE(x < b.high);
      const double part = x / 4 - b.low / 4, whole = b.high / 4 - b.low / 4;
      ++quarters[std::min(3, int(part / whole * 4))];
    }
    for (int count : quarters) CHECK(std::abs(count - 2048) < 200);
  }
}

TEST_CASE("truncated normal numbers stay within two deviations in every float type") {
  for (DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f64}) {
    INFO(dtype_name(dtype));
    for (double x : draw("TruncatedNormal", dtype, {{"mean", 100.0}, {"stddev", 3.3}}))
      REQUIRE(std::abs(x - 100) <= 6.6);
  }
}

TEST_CASE("a random op refuses bounds between which there is no number") {
  for (const char* op : {"RandomUniform", "RandomUniformLike"})
    for (DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f64}) {
      CAPTURE(op);
      CAPTURE(dtype_name(dtype));
      const auto says_of = [&](double low, double high) {
        return refusal(op, dtype, {{"low", low}, {"high", high}});
      };
      CHECK(says_of(0, 1) == "accepted");
      CHECK(says(says_of(1, 0), "no number in [1, 0)"));
      CHECK(says(says_of(1, 1), "no number in [1, 1)"));
      CHECK(says(says_of(kNan, 1), "low is nan"));
      CHECK(says(says_of(0, kNan), "high is nan"));
      CHECK(says(says_of(0, kInf), "high is inf"));
      CHECK(says(says_of(-kInf, 0), "low is -inf"));
    }
  CHECK(
      says(refusal("RandomUniform", DType::f16, {{"low", -1e5}, {"high", 0.0}}), "low is -100000"));
  CHECK(
      says(refusal("RandomUniform", DType::f32, {{"low", 0.0}, {"high", 1e39}}), "high is 1e+39"));
  CHECK(says(refusal("RandomUniform", DType::bf16, {{"low", 1000.5}, {"high", 1001.5}}),
             "no bf16 in [1000.5, 1001.5)"));
}

TEST_CASE("normal numbers have a finite mean and a deviation that is not negative") {
  for (const char* op : {"RandomStandardNormal", "TruncatedNormal"}) {
    CAPTURE(op);
    const auto says_of = [&](DType dtype, double mean, double deviation) {
      return refusal(op, dtype, {{"mean", mean}, {"stddev", deviation}});
    };
    CHECK(says_of(DType::f32, 0, 0) == "accepted");
    CHECK(says(says_of(DType::f32, 0, -1), "stddev must not be negative"));
    CHECK(says(says_of(DType::f32, 0, kNan), "stddev is nan"));
    CHECK(says(says_of(DType::f32, kInf, 1), "mean is inf"));
    CHECK(says(says_of(DType::f16, 0, 1e5), "stddev is 100000"));
  }
}

TEST_CASE("a refusal of bounds names the line") {
  Graph g;
  try {
    random_uniform(g, {2}, {.low = 2, .high = 1});
    FAIL("accepted");
  } catch (const Error& e) {
    CHECK(says(e.status().text(), "random_bounds_test.cpp"));
  }
}

}  // namespace troupe::test
