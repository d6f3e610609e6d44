// Convolutions of f16 and bf16, and their gradients: summed in f32, rounded once.
#include <doctest/doctest.h>

#include "graph/gradients.hpp"
#include "ops/api.hpp"
#include "ops/graph_api.hpp"
#include "tests/ops/api_interpreter.hpp"
#include "tests/ops/kernels/sums_in_any_order.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

Tensor sizes_list(const Shape& shape) { return Tensor::of<std::int64_t>(Shape{4}, shape.dims()); }

// Of the op of f32, whose result is rounded once; and near the sums of f64.
void check_convolution(DType type, const char* op, const std::vector<Tensor>& inputs,
                       const AttrMap& attrs, std::int64_t terms) {
  INFO(op << " of " << dtype_name(type));
  const Tensor got = run(op, inputs, attrs)[0];
  REQUIRE(got.dtype() == type);
  CHECK(Tensor::same(got, converted(run(op, converted(inputs, DType::f32), attrs)[0], type)));
  const std::vector<Tensor> wide = converted(inputs, DType::f64);
  std::vector<Tensor> sizes = wide;
  for (Tensor& x : sizes)
    if (x.dtype() == DType::f64) x = sizes_of(x);
  const Tensor sums = run(op, wide, attrs)[0], of_sizes = run(op, sizes, attrs)[0];
  const double half_ulp = type == DType::f16 ? 0x1p-11 : 0x1p-8;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < sums.elements(); ++i) {
    const double sum = element(sums, i), lost = 0x1p-24 * double(terms) * element(of_sizes, i);
    wrong +=
        !(std::abs(element(got, i) - sum) <= half_ulp * (std::abs(sum) + lost) + lost + 0x1p-25);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("convolutions of 16-bit floats are summed in f32 and rounded once") {
  Random random(test_seed());
  INFO("seed " << test_seed());
  using Ints = std::vector<std::int64_t>;
  struct Window {
    const char* what;
    Shape x, filter;
    Ints strides, dilations;
    std::int64_t groups;
  };
  const Window windows[] = {
      {"plain", {3, 9, 8, 16}, {3, 3, 16, 24}, {1, 1}, {1, 1}, 1},
      {"few channels", {2, 9, 8, 3}, {3, 2, 3, 5}, {2, 1}, {1, 1}, 1},
      {"dilated", {2, 9, 8, 4}, {3, 2, 4, 5}, {1, 1}, {2, 3}, 1},
      {"groups", {2, 7, 6, 6}, {2, 3, 2, 9}, {1, 2}, {1, 1}, 3},
      {"each channel by itself", {2, 7, 6, 8}, {3, 3, 1, 8}, {1, 1}, {1, 1}, 8},
      {"1 x 1", {5, 6, 7, 11}, {1, 1, 11, 6}, {1, 1}, {1, 1}, 1},
      {"a sum over many pixels", {40, 12, 12, 2}, {3, 3, 2, 4}, {1, 1}, {1, 1}, 1},
  };
  for (const DType type : {DType::f16, DType::bf16})
    for (const Window& w : windows) {
      INFO(w.what);
      const AttrMap attrs{{"strides", w.strides}, {"dilations", w.dilations}, {"groups", w.groups}};
      const Tensor x = numbers(random, type, w.x), filter = numbers(random, type, w.filter);
      const std::int64_t window = w.filter.dim(0) * w.filter.dim(1);
      check_convolution(type, "Conv2D", {x, filter}, attrs, window * w.filter.dim(2));
      const Shape of_y = run("Conv2D", {x, filter}, attrs)[0].shape();
      const Tensor dy = numbers(random, type, of_y);
      check_convolution(type, "Conv2DBackpropInput", {sizes_list(w.x), filter, dy}, attrs,
                        window * w.filter.dim(3));
      check_convolution(type, "Conv2DBackpropFilter", {x, sizes_list(w.filter), dy}, attrs,
                        of_y.elements() / of_y.dim(3));
    }
}

// Each of the three ops is the gradient of the other two.
TEST_CASE_TEMPLATE("gradients of a 16-bit convolution, and theirs, have its type and values", T,
                   half, bfloat16) {
  const Shape of_x{2, 5, 4, 3}, of_filter{3, 2, 3, 4};
  Graph g;
  const Output x = placeholder<T>(g, PartialShape(of_x), "x"),
               filter = placeholder<T>(g, PartialShape(of_filter), "filter"),
               v = placeholder<T>(g, PartialShape(of_filter), "v");
  const Output y = conv2d(x, filter, {.strides = {1, 2}});
  const Output ys[] = {y}, xs[] = {x, filter};
  const auto first = gradients(ys, xs);
  REQUIRE_MESSAGE(first.ok(), first.status().text());
  // d of the sum of dfilter * v, for x: v is what arrives at dfilter.
  const Output dfilters[] = {(*first)[1]}, images[] = {x}, along[] = {v};
  const auto second = gradients(dfilters, images, along);
  REQUIRE_MESSAGE(second.ok(), second.status().text());
  Random random(23);
  const Tensor a = numbers(random, dtype_of<T>, of_x), b = numbers(random, dtype_of<T>, of_filter),
               c = numbers(random, dtype_of<T>, of_filter);
  Interpreter interpreter(g);
  const auto made =
      interpreter.run({y, (*first)[0], (*first)[1], (*second)[0]}, {},
                      {{x.port().node, a}, {filter.port().node, b}, {v.port().node, c}});
  const AttrMap attrs{{"strides", std::vector<std::int64_t>{1, 2}}};
  const Tensor dy = run("OnesLike", {made[0]})[0];
  CHECK(Tensor::same(made[0], run("Conv2D", {a, b}, attrs)[0]));
  CHECK(Tensor::same(made[1], run("Conv2DBackpropInput", {sizes_list(of_x), b, dy}, attrs)[0]));
  CHECK(
      Tensor::same(made[2], run("Conv2DBackpropFilter", {a, sizes_list(of_filter), dy}, attrs)[0]));
  CHECK(Tensor::same(made[3], run("Conv2DBackpropInput", {sizes_list(of_x), c, dy}, attrs)[0]));
}

}  // namespace troupe::test
