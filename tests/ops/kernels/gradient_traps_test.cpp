// Gradients where finite differences say nothing: ties, zeros, edges of a domain.
#include <doctest/doctest.h>

#include <cmath>

#include "graph/gradients.hpp"
#include "tests/ops/kernels/conformance.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

// d(sum of y)/d(inputs) of one op on constants; undefined tensors where no gradient flows.
std::vector<Tensor> slopes(const std::string& op, const std::vector<Tensor>& inputs,
                           AttrMap attrs = {}) {
  GraphBuilder g(ops::builtin().ops);
  std::vector<Output> xs;
  for (const Tensor& t : inputs) xs.push_back(g.add("Const", {}, {{"T", t.dtype()}, {"value", t}}));
  std::vector<Output> ys{g.add({.op = op, .inputs = xs, .attrs = std::move(attrs)}).output()};
  auto dxs = gradients(ys, xs);
  REQUIRE_MESSAGE(dxs.ok(), dxs.status().text());
  std::vector<std::vector<Tensor>> values;
  for (const NodeDef& node : g.def().nodes) {
    std::vector<Tensor> in;
    for (Port p : node.inputs) in.push_back(values[p.node][p.index]);
    auto out = evaluate(ops::builtin(), node, std::move(in), inline_device());
    REQUIRE_MESSAGE(out.ok(), out.status().text());
    values.push_back(std::move(out).value());
  }
  std::vector<Tensor> result;
  for (Output dx : *dxs)
    result.push_back(dx.empty() ? Tensor() : values[dx.node()][dx.port().index]);
  return result;
}

}  // namespace

TEST_CASE("equal maxima share the gradient equally") {
  auto dx = slopes("Max", {f64({2, 3}, {1, 5, 5, 2, 2, 2})}, {{"axes", ints({1})}});
  CHECK(Tensor::same(dx[0], f64({2, 3}, {0, 0.5, 0.5, 1.0 / 3, 1.0 / 3, 1.0 / 3})));
  auto both = slopes("Maximum", {f64({3}, {1, 2, 3}), f64({3}, {3, 2, 1})});
  CHECK(Tensor::same(both[0], f64({3}, {0, 0.5, 1})));
  CHECK(Tensor::same(both[1], f64({3}, {1, 0.5, 0})));
}

TEST_CASE("a power at base 0 has a gradient without NaN") {
  auto d = slopes("Pow", {f64({3}, {0, 0, 2}), f64({3}, {0, 2, 0})});
  CHECK(Tensor::same(d[0], f64({3}, {0, 0, 0})));
  CHECK(d[1].data<double>()[0] == 0);
  CHECK(d[1].data<double>()[1] == 0);
  CHECK(d[1].data<double>()[2] == doctest::Approx(std::log(2)));
}

TEST_CASE("the slope of a remainder is the quotient that it was computed with") {
  const Tensor a = f64({4}, {1, 6, 7, -1}), b = f64({4}, {0.1, 0.1, 2, 0.1});
  const Tensor y = run("Mod", {a, b})[0], db = slopes("Mod", {a, b})[1];
  CHECK(Tensor::same(db, f64({4}, {-9, -59, -3, 10})));
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(y.data<double>()[i] ==
          doctest::Approx(a.data<double>()[i] + db.data<double>()[i] * b.data<double>()[i]));
}

TEST_CASE("the square root at 0 has an infinite slope, the absolute value none") {
  CHECK(slopes("Sqrt", {f64({1}, {0})})[0].item<double>() == HUGE_VAL);
  CHECK(slopes("Abs", {f64({1}, {0})})[0].item<double>() == 0);
}

TEST_CASE("the slopes of Gelu do not change where x is large, or has no finite square") {
  for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const char* op : {"GeluGrad", "GeluTanhGrad"}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(op);
      const double size = dtype == DType::f16 ? 3e4 : dtype == DType::f64 ? 1e200 : 1e30;
      const Tensor dy = converted(f64({4}, {1, 1, 1, 1}), dtype);
      const Tensor x = converted(f64({4}, {size, -size, 100, -100}), dtype);
      const auto d = slopes(op, {dy, x});
      const Tensor by_dy = converted(d[0], DType::f64), by_x = converted(d[1], DType::f64);
      for (std::int64_t i = 0; i < 4; ++i) {
        CHECK(by_dy.data<double>()[i] == (i % 2 == 0 ? 1 : 0));
        CHECK(by_x.data<double>()[i] == 0);
      }
    }
}

TEST_CASE("inverse functions of f16 have slopes where squares of f16 overflow") {
  const Tensor x = converted(f64({2}, {300, 60000}), DType::f16);
  const auto check = [&](const char* op, std::initializer_list<double> wanted) {
    CAPTURE(op);
    const Tensor dx = converted(slopes(op, {x})[0], DType::f64);
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(dx.span<double>()[i] ==
            doctest::Approx(std::data(wanted)[i]).epsilon(4e-3).scale(1e-6));
  };
  check("Asinh", {1 / 300.0, 1 / 60000.0});
  check("Acosh", {1 / 300.0, 1 / 60000.0});
  check("Atan", {1 / 90001.0, 0});
}

TEST_CASE("nothing flows through what has no gradient") {
  for (const char* op : {"StopGradient", "Floor", "Sign", "ZerosLike"})
    CHECK(!slopes(op, {f64({1}, {0.5})})[0].defined());
  CHECK(!slopes("Cast", {i64({1}, {1})}, {{"to", DType::f64}})[0].defined());
  CHECK(!slopes("Gather", {f64({2}, {1, 2}), i64({1}, {0})})[1].defined());
}

TEST_CASE("an index taken twice gets both gradients") {
  auto d = slopes("Gather", {f64({3}, {1, 2, 3}), i64({4}, {2, 0, 2, 2})});
  CHECK(Tensor::same(d[0], f64({3}, {1, 0, 3})));
}

}  // namespace troupe::test
