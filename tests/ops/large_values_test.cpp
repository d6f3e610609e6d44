// Layers and norms of finite values whose squares are not.
#include "tests/ops/extreme_values.hpp"

namespace troupe::test::extreme {

TEST_CASE("layer norm of large values is that of the same values made smaller") {
  const Large all[] = {{DType::f16, 1000, 2e-3},   {DType::f16, 30000, 2e-3},
                       {DType::bf16, 1e20, 2e-2},  {DType::f32, 1e20, 1e-6},
                       {DType::f32, 1e38, 1e-6},   {DType::f32, 3e38, 1e-6},
                       {DType::f64, 1e200, 1e-14}, {DType::f64, 1.5e308, 1e-14}};
  for (const Large& l : all) {
    CAPTURE(dtype_name(l.dtype));
    CAPTURE(l.size);
    Graph g;
    Root root{g.scope("net")};
    nn::LayerNorm norm{root, "norm", 4, {.epsilon = 0, .dtype = l.dtype}};
    const auto of = [&](double size) {
      return values_of(g, l.dtype, {2, 4}, {size, -size, size, -size, size, size / 2, 0, -size});
    };
    const Output large = of(l.size), small = of(1);
    const Output weights = values_of(g, l.dtype, {2, 4}, {1, 2, -1, 0.5, 2, 1, 3, -2});
    const Output y = norm(large), want = norm(small);
    Interpreter run(g);
    run.init();
    check_near(wide(run, y), wide(run, want), l.epsilon);
    // d y(s x) / d (s x) = d y(x) / d x / s
    const auto slope = [&](Output of_y, Output x) {
      return wide(run, gradients_of(sum(of_y * weights), {x})[0]);
    };
    auto got = slope(y, large);
    if (l.dtype != DType::f32 || l.size > 1e30) continue;  // the slope itself is too small
    for (double& d : got) d *= l.size;
    const auto slopes = slope(want, small);
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == doctest::Approx(slopes[i]).epsilon(2 * l.epsilon).scale(1));
  }
}

}  // namespace troupe::test::extreme
