// Slices by lists of indices and ranges, and what is known of them before a run.
#include <doctest/doctest.h>

#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"
#include "tests/ops/kernels/conformance.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// [2,3,4] with the elements 0, 1, ..., 23.
Tensor counted() {
  std::vector<double> values;
  for (int i = 0; i < 24; ++i) values.push_back(i);
  return Tensor::of<double>(Shape{2, 3, 4}, values);
}

}  // namespace

TEST_CASE("a slice takes indices, ranges, whole and new dimensions in their order") {
  Graph g;
  Output x = constant(g, counted());
  Interpreter run(g);
  const auto check = [&](std::initializer_list<Index> where, const Tensor& want) {
    Output y = x[where];
    CHECK(y.shape() == PartialShape(want.shape()));
    const Tensor got = run.run({y})[0];
    CHECK_MESSAGE(Tensor::same(got, want), got.text());
  };
  check({1, 2, 3}, f64({}, {23}));
  check({-1, 0, range(1, 3)}, f64({2}, {13, 14}));
  check({0, whole, 0}, f64({3}, {0, 4, 8}));
  check({1, range(std::nullopt, std::nullopt, -1), -1}, f64({3}, {23, 19, 15}));
  check({ellipsis, 1}, f64({2, 3}, {1, 5, 9, 13, 17, 21}));
  check({0, ellipsis, newaxis, range(2, std::nullopt)}, f64({3, 1, 2}, {2, 3, 6, 7, 10, 11}));
  check({range(std::nullopt, -1), 0, range(0, 100, 3)}, f64({1, 2}, {0, 3}));
  check({1, 1}, f64({4}, {16, 17, 18, 19}));
  CHECK(Tensor::same(run.run({x[1]})[0], run.run({x[{1}]})[0]));
  CHECK(x[range(0, 1)].shape() == PartialShape{1, 3, 4});
}

TEST_CASE("an index may be a value: slices along the first dimension, with their gradient") {
  Graph g;
  const Output x = constant(g, counted());
  const Output two = constant<std::int64_t>(g, {2, 1}, {1, 0}), one = constant(g, 1);
  const Variable table = variable(g, "table", counted());
  CHECK(x[two].shape() == PartialShape{2, 1, 3, 4});
  CHECK(table[two].shape() == PartialShape{2, 1, 3, 4});
  Interpreter run(g);
  const auto values = run.run({x[one], x[1], x[two], gather(x, two), gradients(x[one], {x})[0]});
  CHECK(Tensor::same(values[0], values[1]));
  CHECK(Tensor::same(values[2], values[3]));
  CHECK(values[4].data<double>()[11] == 0);
  CHECK(values[4].data<double>()[12] == 1);
  test::check_refused({
      {"Gather: indices is f64", [&] { x[x]; }},
      {"boolean_mask(x, mask)", [&] { x[x > 3]; }},
      {"the index is empty", [&] { x[Output()]; }},
      {"the Output is empty", [&] { Output()[one]; }},
  });
}

TEST_CASE("a slice of a tensor that is not known yet has what shape can be told") {
  Graph g;
  Output open = placeholder<float>(g, {-1, 3, 4});
  CHECK((open[{whole, 1}].shape() == PartialShape{-1, 4}));
  CHECK((open[{0, range(1, 3), newaxis}].shape() == PartialShape{2, 1, 4}));
  CHECK((open[{range(0, 2)}].shape() == PartialShape{-1, 3, 4}));
  CHECK((open[{ellipsis, newaxis, 2}].shape() == PartialShape{-1, 3, 1}));
  CHECK_FALSE(placeholder<float>(g, PartialShape())[{1}].shape().known_rank());
}

TEST_CASE("dimensions that are sliced out of a shape stay known") {
  Graph g;
  Output open = placeholder<float>(g, {-1, 3, 4});
  Output last = shape(open)[-1], inner = shape(open)[range(1, std::nullopt)];
  Output flat = reshape(open, pack({constant<std::int64_t>(g, -1), last}));
  CHECK(flat.shape() == PartialShape{-1, 4});
  CHECK(reshape(open[{0}], inner).shape() == PartialShape{3, 4});
}

TEST_CASE("a gradient flows back to the elements that a slice took") {
  Graph g;
  Variable v = variable(g, "v", counted());
  Output loss = sum(v.value()[{1, whole, range(3, std::nullopt, -2)}] * 2.0);
  auto grads = value_or_throw(gradients(std::span(&loss, 1), std::vector<Output>{v.handle()}));
  Interpreter run(g);
  run.init();
  const Tensor slope = run.run({grads[0]})[0];
  REQUIRE(slope.shape() == Shape{2, 3, 4});
  for (std::size_t i = 0; i < 24; ++i)
    CHECK(slope.span<double>()[i] == (i >= 12 && i % 2 == 1 ? 2 : 0));
}

TEST_CASE("a slice that x does not have is refused on the line that takes it") {
  Graph g;
  Output x = constant(g, counted());
  CHECK_THROWS_AS((x[{2}]), Error);
  CHECK_THROWS_AS((x[{0, 0, 0, 0}]), Error);
  CHECK_THROWS_AS((x[{ellipsis, ellipsis}]), Error);
  CHECK_THROWS_AS((x[{range(0, 1, 0)}]), Error);
  CHECK_THROWS_AS(Output()[{0}], Error);
  try {
    x[{0, 3}];
    FAIL("accepted");
  } catch (const Error& e) {
    CHECK(e.status().text().find("index 3 of dimension 1") != std::string::npos);
    CHECK(e.status().text().find("slicing_test.cpp") != std::string::npos);
  }
}
