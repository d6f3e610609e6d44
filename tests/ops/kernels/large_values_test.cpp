// Layers and norms of finite values whose squares are not.
#include "tests/ops/kernels/extreme_values.hpp"

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

TEST_CASE("second slopes of a layer norm of large f16 are those of small ones, made smaller") {
  Graph g;
  Root root{g.scope("net")};
  nn::LayerNorm norm{root, "norm", 4, {.epsilon = 0, .dtype = DType::f16}};
  const Output weights = values_of(g, DType::f16, {2, 4}, {1, 2, -1, 0.5, 2, 1, 3, -2});
  const Output along = values_of(g, DType::f16, {2, 4}, {1, -1, 2, 0.5, 3, 1, -2, 1});
  const auto second = [&](double size) {
    const Output x =
        values_of(g, DType::f16, {2, 4}, {size, -size, size, -size, size, size / 2, 0, -size});
    const Output dx = gradients_of(sum(norm(x) * weights), {x})[0];
    return gradients_of(sum(dx * along), {weights})[0];
  };
  const Output large = second(1000), small = second(1);
  Interpreter run(g);
  run.init();
  const auto got = wide(run, large), want = wide(run, small);
  CHECK(want[0] == doctest::Approx(-0.5).epsilon(4e-3));
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(got[i] * 1000 == doctest::Approx(want[i]).epsilon(4e-3).scale(1));
}

TEST_CASE("batch norm of large values is that of the same values made smaller") {
  const Large all[] = {{DType::f32, 1e20, 1e-6},
                       {DType::f32, 3e38, 1e-6},
                       {DType::f64, 1e200, 1e-14},
                       {DType::f64, 1.5e308, 1e-14}};
  for (const Large& l : all) {
    CAPTURE(dtype_name(l.dtype));
    CAPTURE(l.size);
    Graph g;
    Root root{g.scope("net")};
    nn::BatchNorm norm{root, "norm", 2, {.epsilon = 0, .dtype = l.dtype}};
    auto training = norm.train();
    // The first channel is large, the second is not.
    const auto of = [&](double size) {
      return values_of(g, l.dtype, {4, 2}, {size, 1, -size, 2, size / 2, 4, -size, -1});
    };
    const Output large = of(l.size), small = of(1);
    const Output weights = values_of(g, l.dtype, {4, 2}, {1, 2, -1, 0.5, 2, 1, 3, -2});
    const Output y = norm(large), want = norm(small);
    Interpreter run(g);
    run.init();
    check_near(wide(run, y), wide(run, want), l.epsilon);
    if (l.size > (l.dtype == DType::f32 ? 1e30 : 1e290)) continue;
    const auto slope = [&](Output of_y, Output x) {
      return wide(run, gradients_of(sum(of_y * weights), {x})[0]);
    };
    auto got = slope(y, large), slopes = slope(want, small);
    for (std::size_t i = 0; i < got.size(); i += 2) got[i] *= l.size;
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == doctest::Approx(slopes[i]).epsilon(4 * l.epsilon).scale(1));
  }
}

TEST_CASE("group norm of large values is that of the same values made smaller") {
  const Large all[] = {{DType::f16, 30000, 2e-3},  {DType::bf16, 1e20, 2e-2},
                       {DType::f32, 1e20, 1e-6},   {DType::f32, 3e38, 1e-6},
                       {DType::f64, 1e200, 1e-14}, {DType::f64, 1.5e308, 1e-14}};
  for (const Large& l : all)
    for (const std::int64_t positions : {2, 20'000}) {  // one block, and several
      CAPTURE(dtype_name(l.dtype));
      CAPTURE(l.size);
      CAPTURE(positions);
      Graph g;
      Root root{g.scope("net")};
      nn::GroupNorm norm{root, "norm", 2, 4, {.epsilon = 0, .dtype = l.dtype}};
      // The first group is large, the second is not.
      const auto of = [&](double s) {
        const Output two = values_of(g, l.dtype, {1, 2, 4}, {s, -s, 1, 4, s / 2, -s, 2, -3});
        return tile(two, {1, positions / 2, 1});
      };
      const Output large = of(l.size), small = of(1);
      const Output weights = tile(values_of(g, l.dtype, {1, 2, 4}, {1, 2, -1, 0.5, 2, 1, 3, -2}),
                                  {1, positions / 2, 1});
      const Output y = norm(large), want = norm(small);
      Interpreter run(g);
      run.init();
      check_near(wide(run, y), wide(run, want), positions > 2 ? 8 * l.epsilon : l.epsilon);
      if (l.dtype != DType::f32 || l.size > 1e30 || positions > 2) continue;
      const auto slope = [&](Output of_y, Output x) {
        return wide(run, gradients_of(sum(of_y * weights), {x})[0]);
      };
      auto got = slope(y, large), slopes = slope(want, small);
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (i % 4 < 2) got[i] *= l.size;
        CHECK(got[i] == doctest::Approx(slopes[i]).epsilon(4 * l.epsilon).scale(1));
      }
    }
}

TEST_CASE("norms of infinite values are NaN, not numbers") {
  Graph g;
  Root root{g.scope("net")};
  nn::LayerNorm layer{root, "layer", 2, {.dtype = DType::f32}};
  nn::BatchNorm batch{root, "batch", 1, {.dtype = DType::f32}};
  nn::GroupNorm group{root, "group", 1, 2, {.dtype = DType::f32}};
  auto training = batch.train();
  const Output x = values_of(g, DType::f32, {1, 2}, {kInf, 1}),
               column = values_of(g, DType::f32, {2, 1}, {kInf, 1});
  const Output all[] = {layer(x), batch(column), group(x)};
  Interpreter run(g);
  run.init();
  for (Output y : all)
    for (double v : wide(run, y)) CHECK(std::isnan(v));
}

TEST_CASE("the statistics of equal values are that value and no variance") {
  for (DType dtype : {DType::f32, DType::f64})
    for (std::int64_t rows : {7, 1000, 20'000}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(rows);
      Graph g;
      const std::vector<double> channels{0.1, -1e5 / 3, 1e20 / 7};
      const Output one_row = values_of(g, dtype, {1, 3}, channels);
      const Output x = tile(one_row, {rows, 1});
      const Output c = values_of(g, dtype, {3}, {1, 1, 1});
      const auto norm = fused_batch_norm(x, c, c, c, c, {.epsilon = 1e-3, .is_training = true});
      Interpreter run(g);
      CHECK(wide(run, norm.batch_mean) == wide(run, one_row));
      const double digit = dtype == DType::f32 ? 0x1p-23 : 0x1p-52;
      const auto variance = wide(run, norm.batch_variance);
      for (std::size_t j = 0; j < 3; ++j) CHECK(variance[j] <= std::pow(digit * channels[j], 2));
    }
}

TEST_CASE("a norm of large gradients shrinks them, whose squares overflow") {
  const Large all[] = {
      {DType::f32, 1e20, 1e-6}, {DType::f32, 8e37, 1e-6}, {DType::f64, 1e200, 1e-14}};
  for (const Large& l : all) {
    CAPTURE(dtype_name(l.dtype));
    CAPTURE(l.size);
    Graph g;
    const Variable v = variable(g, "v", Tensor::zeros(l.dtype, Shape{2}).value());
    const Output slope = values_of(g, l.dtype, {2}, {3 * l.size, -4 * l.size});
    optim::Gradients gradients;
    gradients.each.push_back({v, slope});
    Interpreter run(g);
    run.init();
    const double norm = run.run({optim::global_norm(gradients)})[0].item<double>();
    CHECK(norm == doctest::Approx(5 * l.size).epsilon(l.epsilon));
    for (const auto& clipped :
         {optim::clip_by_global_norm(gradients, 10), optim::clip_by_norm(gradients, 10)})
      check_near(wide(run, clipped.each[0].value), {6, -8}, l.epsilon);
  }
}

TEST_CASE("a norm of tiny gradients is not zero") {
  for (const Large& l : {Large{DType::f32, 1e-30, 1e-6}, Large{DType::f64, 1e-200, 1e-14}}) {
    Graph g;
    const Variable v = variable(g, "v", Tensor::zeros(l.dtype, Shape{2}).value());
    optim::Gradients gradients;
    gradients.each.push_back({v, values_of(g, l.dtype, {2}, {3 * l.size, -4 * l.size})});
    Interpreter run(g);
    const double norm = run.run({optim::global_norm(gradients)})[0].item<double>();
    CHECK(norm / l.size == doctest::Approx(5).epsilon(l.epsilon));
  }
}

}  // namespace troupe::test::extreme
