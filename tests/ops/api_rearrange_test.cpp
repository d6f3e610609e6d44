// ops/api/rearrange: mirrored borders and blocks.
#include <doctest/doctest.h>

#include <functional>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

std::vector<float> values_after(Graph& g, const Output& y) {
  const Tensor t = Interpreter(g).run({y})[0];
  return {t.span<float>().begin(), t.span<float>().end()};
}
std::string refusal_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status().text();
  }
  return {};
}
Output numbered(Graph& g, const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) values.push_back(float(i + 1));
  return constant(g, Tensor::of<float>(shape, values));
}

}  // namespace

TEST_CASE("mirror_pad repeats the border or does not, and sums its gradients") {
  Graph g;
  const Output x = numbered(g, {3});
  CHECK(values_after(g, mirror_pad(x, {{2, 1}})) == std::vector<float>{3, 2, 1, 2, 3, 2});
  const Output y = mirror_pad(x, {{2, 3}}, "symmetric");
  CHECK(values_after(g, y) == std::vector<float>{2, 1, 1, 2, 3, 3, 2, 1});
  CHECK(values_after(g, gradients(y, {x})[0]) == std::vector<float>{3, 3, 2});
  const Output open = placeholder(g, DType::f32, {-1, 2});
  const Output wide = mirror_pad(open, {{1, 0}, {0, 1}});
  Interpreter run(g);
  const Tensor fed = Tensor::of<float>(Shape{2, 2}, {1, 2, 3, 4});
  CHECK(Tensor::same(run.run({wide}, {}, {{open.node(), fed}})[0],
                     Tensor::of<float>(Shape{3, 3}, {3, 4, 3, 1, 2, 1, 3, 4, 3})));
  CHECK(refusal_of([&] { mirror_pad(x, {{1, 1}}, "wrap"); }).find("wrap") != std::string::npos);
  CHECK(refusal_of([&] { mirror_pad(x, {{-1, 1}}); }).find("-1") != std::string::npos);
  CHECK(refusal_of([&] { mirror_pad(x, {}); }).find("0 paddings") != std::string::npos);
  CHECK(!refusal_of([&] { mirror_pad(x, {{3, 0}}); }).empty());
}

TEST_CASE("blocks of places become channels, and channels places again") {
  Graph g;
  const Output x = numbered(g, {1, 2, 4, 1});
  const Output deep = space_to_depth(x, 2);
  CHECK(deep.shape() == PartialShape{1, 1, 2, 4});
  CHECK(values_after(g, deep) == std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8});
  CHECK(values_after(g, depth_to_space(deep, 2)) == values_after(g, x));
  const Output more = numbered(g, {2, 6, 4, 3});
  CHECK(values_after(g, depth_to_space(space_to_depth(more, 2), 2)) == values_after(g, more));
  CHECK(space_to_depth(placeholder(g, DType::f32, {-1, 4, 4, 3}), 2).shape() ==
        PartialShape{-1, 2, 2, 12});
  CHECK(refusal_of([&] { space_to_depth(more, 4); }).find("not divisible") != std::string::npos);
  CHECK(refusal_of([&] { depth_to_space(more, 2); }).find("not divisible") != std::string::npos);
  CHECK(!refusal_of([&] { space_to_depth(more, 0); }).empty());
  CHECK(!refusal_of([&] { space_to_depth(zeros(g, {1, 0, 0, 4}), INT64_MAX); }).empty());
}

TEST_CASE("blocks of places become pictures of the batch, and come back without the crops") {
  Graph g;
  const Output x = numbered(g, {1, 4, 4, 1});
  const Output many = space_to_batch(x, {2, 2}, {{0, 0}, {0, 0}});
  CHECK(many.shape() == PartialShape{4, 2, 2, 1});
  CHECK(values_after(g, many) ==
        std::vector<float>{1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16});
  const Output odd = numbered(g, {2, 3, 5, 2});
  const Output back =
      batch_to_space(space_to_batch(odd, {2, 3}, {{1, 0}, {0, 1}}), {2, 3}, {{1, 0}, {0, 1}});
  CHECK(back.shape() == odd.shape());
  CHECK(values_after(g, back) == values_after(g, odd));
  CHECK(space_to_batch(placeholder(g, DType::f32, {-1, 4, 3}), {2}, {{0, 0}}).shape() ==
        PartialShape{-1, 2, 3});
  CHECK(!refusal_of([&] { space_to_batch(odd, {2}, {{0, 0}}); }).empty());
  CHECK(!refusal_of([&] { space_to_batch(odd, {0}, {{0, 0}}); }).empty());
  CHECK(!refusal_of([&] { space_to_batch(odd, {1, 1}, {{0, 0}}); }).empty());
  CHECK(!refusal_of([&] { batch_to_space(odd, {2}, {{INT64_MAX, INT64_MAX}}); }).empty());
  CHECK(!refusal_of([&] { batch_to_space(odd, {4}, {{0, 0}}); }).empty());
}

TEST_CASE("clip_by_value takes numbers and tensors, and lets gradients through between them") {
  Graph g;
  const Output x = constant(g, {-2.f, 0.5f, 3.f}), high = constant(g, {1.f, 0.25f, 4.f});
  CHECK(values_after(g, clip_by_value(x, -1, 1)) == std::vector<float>{-1, 0.5, 1});
  const Output y = clip_by_value(x, -1, high);
  CHECK(values_after(g, y) == std::vector<float>{-1, 0.25, 3});
  CHECK(values_after(g, gradients(y, {x})[0]) == std::vector<float>{0, 0, 1});
  CHECK(values_after(g, gradients(y, {high})[0]) == std::vector<float>{0, 1, 0});
}
