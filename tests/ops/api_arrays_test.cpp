// ops/api/arrays: masks, grids, triangles and orders.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

constexpr float kArrayInf = std::numeric_limits<float>::infinity();
constexpr float kArrayNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> numbers_of(const Tensor& t) {
  return {t.span<float>().begin(), t.span<float>().end()};
}
std::vector<float> values_of_array(Graph& g, const Output& y) {
  return numbers_of(Interpreter(g).run({y})[0]);
}
template <class F>
std::string refused_array(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status().text();
  }
  return {};
}
bool says_of_array(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("log_sum_exp is right where exp overflows, of infinities and of nothing") {
  Graph g;
  const Output x = constant(
      g, {{1000.f, 1000.f}, {-kArrayInf, -kArrayInf}, {kArrayInf, 1.f}, {0.f, -kArrayInf}});
  const auto y = values_of_array(g, log_sum_exp(x, 1));
  CHECK(y[0] == doctest::Approx(1000.6931f));
  CHECK(y[1] == -kArrayInf);
  CHECK(y[2] == kArrayInf);
  CHECK(y[3] == 0.f);
  CHECK(values_of_array(g, log_sum_exp(zeros(g, {0})))[0] == -kArrayInf);
  CHECK(Interpreter(g).run({log_sum_exp(x, 1, true)})[0].shape() == Shape{4, 1});
  const Output z = constant(g, {0.f, std::log(3.f)});
  const auto dz = values_of_array(g, gradients(log_sum_exp(z), {z})[0]);
  CHECK(dz[0] == doctest::Approx(0.25f));
  CHECK(dz[1] == doctest::Approx(0.75f));
}

TEST_CASE("elements that are all -inf have no gradient of log_sum_exp, and leave that of others") {
  Graph g;
  const Output x = constant(g, {{-kArrayInf, -kArrayInf}, {0.f, -kArrayInf}, {1.f, 1.f}});
  const Output slope = gradients(log_sum_exp(x, 1), {x})[0];
  CHECK(values_of_array(g, slope) == std::vector<float>{0, 0, 1, 0, 0.5f, 0.5f});
  CHECK(values_of_array(g, gradients(slope * slope, {x})[0]) ==
        std::vector<float>{0, 0, 0, 0, 0, 0});
  const Output unknown = constant(g, {kArrayNan, -kArrayInf});
  CHECK(std::isnan(values_of_array(g, log_sum_exp(unknown))[0]));
}

TEST_CASE("boolean_mask takes what a mask says, in one dimension or several") {
  Graph g;
  const Output x = constant(g, {{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  CHECK(values_of_array(g, boolean_mask(x, x > 3)) == std::vector<float>{4, 5, 6});
  const Output rows = constant(g, Shape{3}, {true, false, true});
  const Output kept = boolean_mask(x, rows);
  CHECK(Interpreter(g).run({kept})[0].shape() == Shape{2, 2});
  CHECK(values_of_array(g, kept) == std::vector<float>{1, 2, 5, 6});
  CHECK(values_of_array(g, boolean_mask(x, x > 9)).empty());
  CHECK(values_of_array(g, gradients(kept * kept, {x})[0]) ==
        std::vector<float>{2, 4, 0, 0, 10, 12});
  CHECK(says_of_array(refused_array([&] { boolean_mask(x, x); }), "not bool"));
  CHECK(says_of_array(refused_array([&] {
                        boolean_mask(x, constant(g, Shape{2}, {true, true}));
                      }),
                      "[2]"));
  // As a run knows them.
  const Output any = placeholder(g, DType::f32, {-1, 2}), at = placeholder(g, DType::bool_, {-1});
  const Output fed = boolean_mask(any, at);
  Interpreter run(g);
  const Tensor all = run.run({x})[0], three = run.run({rows})[0];
  CHECK(run.run({fed}, {}, {{any.node(), all}, {at.node(), three}})[0].shape() == Shape{2, 2});
  const Tensor two = Tensor::of<bool>({2}, {true, false});
  CHECK(
      says_of_array(run.failure_of({fed}, {{any.node(), all}, {at.node(), two}}), "boolean_mask"));
}

TEST_CASE("orders: sort, argsort and top_k agree") {
  Graph g;
  const Output x = constant(g, {3.f, kArrayNan, 1.f, 2.f});
  const Output up = argsort(x), down = argsort(x, -1, true);
  CHECK(values_of_array(g, take_along(x, up, -1))[0] == 1.f);
  Interpreter run(g);
  CHECK(Tensor::same(run.run({up})[0], Tensor::of<std::int64_t>(Shape{4}, {2, 3, 0, 1})));
  CHECK(Tensor::same(run.run({down})[0], Tensor::of<std::int64_t>(Shape{4}, {1, 0, 3, 2})));
  CHECK(
      Tensor::same(run.run({top_k(x, 2).indices})[0], Tensor::of<std::int64_t>(Shape{2}, {1, 0})));
}

TEST_CASE("eye, diag and triangles") {
  Graph g;
  CHECK(values_of_array(g, eye(g, 2)) == std::vector<float>{1, 0, 0, 1});
  CHECK(values_of_array(g, eye(g, 1, 3)) == std::vector<float>{1, 0, 0});
  CHECK(values_of_array(g, eye(g, 0)).empty());
  CHECK(says_of_array(refused_array([&] { eye(g, -1); }), "negative"));
  const Output x = constant(g, {2.f, -kArrayInf});
  CHECK(values_of_array(g, diag(x)) == std::vector<float>{2, 0, 0, -kArrayInf});
  const Output m = constant(g, {{1.f, 2.f}, {3.f, kArrayNan}});
  CHECK(values_of_array(g, tril(m))[1] == 0.f);
  CHECK(values_of_array(g, triu(m))[2] == 0.f);
  CHECK(says_of_array(refused_array([&] { diag(constant(g, 1.f)); }), "rank 1 or more"));
}

TEST_CASE("sequence_mask, linspace and meshgrid") {
  Graph g;
  const Output lengths = constant<std::int32_t>(g, {2}, {1, 3});
  CHECK(Tensor::same(Interpreter(g).run({sequence_mask(lengths, 3)})[0],
                     Tensor::of<bool>(Shape{2, 3}, {true, false, false, true, true, true})));
  CHECK(says_of_array(refused_array([&] { sequence_mask(lengths, -1); }), "negative"));
  CHECK(values_of_array(g, linspace(g, -1, 1, 5)) == std::vector<float>{-1, -.5, 0, .5, 1});
  CHECK(values_of_array(g, linspace(g, 7, 9, 1)) == std::vector<float>{7});
  CHECK(values_of_array(g, linspace(g, 7, 9, 0)).empty());
  CHECK(says_of_array(refused_array([&] { linspace(g, 0, kArrayInf, 3); }), "infinite"));
  CHECK(says_of_array(refused_array([&] { linspace(g, 0, 1, -1); }), "negative"));
  const Output x = constant(g, {1.f, 2.f, 3.f}), y = constant(g, {4.f, 5.f});
  const auto xy = meshgrid({x, y}), ij = meshgrid({x, y}, "ij");
  CHECK(values_of_array(g, xy[0]) == std::vector<float>{1, 2, 3, 1, 2, 3});
  CHECK(values_of_array(g, xy[1]) == std::vector<float>{4, 4, 4, 5, 5, 5});
  CHECK(values_of_array(g, ij[0]) == std::vector<float>{1, 1, 2, 2, 3, 3});
  CHECK(Interpreter(g).run({ij[1]})[0].shape() == Shape{3, 2});
  CHECK(says_of_array(refused_array([&] { meshgrid({x, y}, "ji"); }), "ji"));
  CHECK(says_of_array(refused_array([&] { meshgrid({eye(g, 2)}); }), "[2,2]"));
}

TEST_CASE("a vocabulary may be a list of words") {
  Graph g;
  const Output x = constant<std::string>(g, {3}, {"film", "a", "cinema"});
  const std::vector<std::string> words{"<pad>", "a", "film"};
  const auto values = Interpreter(g).run(
      {vocabulary_index(x, {"a", "film"}), vocabulary_index(x, words, {.missing = 0})});
  CHECK(Tensor::same(values[0], Tensor::of<std::int64_t>({3}, {1, 0, -1})));
  CHECK(Tensor::same(values[1], Tensor::of<std::int64_t>({3}, {2, 1, 0})));
  CHECK(refused_array([&] { vocabulary_index(x, {"a", "b", "a"}); }) != "");
}
