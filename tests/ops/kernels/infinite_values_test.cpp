// Infinities and NaN in functions, and in what is left out.
#include "tests/ops/kernels/extreme_values.hpp"

namespace troupe::test::extreme {

TEST_CASE("functions that saturate have their limits at infinities") {
  struct Row {
    std::string op;
    double below, above;
  };
  for (const Row& row : {Row{"Softsign", -1, 1}, Row{"Tanh", -1, 1}, Row{"Erf", -1, 1},
                         Row{"Elu", -1, kInf}, Row{"Softplus", 0, kInf}, Row{"Relu", 0, kInf},
                         Row{"Relu6", 0, 6}, Row{"Expm1", -1, kInf}, Row{"Sign", -1, 1}})
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      CAPTURE(row.op);
      CAPTURE(dtype_name(dtype));
      Graph g;
      const double most = dtype == DType::f16 ? 65504 : 1e30;
      const Output x = values_of(g, dtype, {4}, {-kInf, kInf, std::nan(""), -most});
      auto added = g.try_add({.op = row.op, .inputs = {x}});
      if (!added.ok()) continue;  // has no such type
      const Output y = added->output();
      Interpreter run(g);
      const auto got = wide(run, y);
      CHECK(got[0] == row.below);
      CHECK(got[1] == row.above);
      CHECK(std::isnan(got[2]));
      CHECK(got[3] == row.below);
      if (row.op == "Sign") continue;
      const auto slopes = wide(run, gradients_of(sum(y), {x})[0]);
      const double rise = row.above == kInf ? row.op.starts_with("Exp") ? kInf : 1 : 0;
      CHECK(slopes[0] == 0);
      CHECK(slopes[1] == rise);
    }
}

TEST_CASE("dropout drops infinities and NaN like any other value") {
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    CAPTURE(dtype_name(dtype));
    Graph g;
    const Output x =
        fill(constant(g, Tensor::of<std::int64_t>({1}, {200})), values_of(g, dtype, {}, {kInf}));
    const Output y = dropout(x, 0.5), dx = gradients_of(sum(y), {x})[0];
    Interpreter run(g);
    const auto both = run.run({cast<double>(y), cast<double>(dx)});
    int kept = 0;
    for (std::size_t i = 0; i < 200; ++i) {
      const double value = both[0].span<double>()[i], slope = both[1].span<double>()[i];
      CHECK((value == 0 || value == kInf));
      CHECK(slope == (value == 0 ? 0 : 2));
      kept += value != 0;
    }
    CHECK(std::abs(kept - 100) < 40);
  }
}

TEST_CASE("a query that may look nowhere gets zeros and passes nothing back") {
  for (bool causal : {false, true})
    for (bool left_out : {true, false}) {
      CAPTURE(causal);
      CAPTURE(left_out);
      Graph g;
      const Output x = values_of(g, DType::f64, {3, 2}, {1, 2, -1, 0.5, 3, 1});
      // The second row sees nothing: by the mask alone, or by both rules together.
      const std::vector<std::uint8_t> open =
          causal ? std::vector<std::uint8_t>{1, 0, 0, 0, 0, 1, 1, 1, 0}
                 : std::vector<std::uint8_t>{1, 0, 1, 0, 0, 0, 1, 1, 0};
      Tensor mask = Tensor::make(DType::bool_, Shape{3, 3}).value();
      std::copy(open.begin(), open.end(), mask.mutable_data<bool>());
      const Output y =
          nn::scaled_dot_product_attention(x, x, x, {.mask = constant(g, mask), .causal = causal});
      const Output kept = constant(g, Tensor::of<bool>({3, 1}, {true, false, true}));
      const Output loss = sum(left_out ? select(kept, square(y), zeros_like(y)) : square(y));
      const Output dx = gradients_of(loss, {x})[0], ddx = gradients_of(sum(square(dx)), {x})[0];
      Interpreter run(g);
      const auto rows = wide(run, y);
      CHECK(rows[2] == 0);
      CHECK(rows[3] == 0);
      CHECK(rows[0] != 0);
      for (Output d : {dx, ddx})
        for (double v : wide(run, d)) CHECK(std::isfinite(v));
      CHECK(wide(run, dx)[0] != 0);
    }
}

TEST_CASE("the gradient of select is zero for the side that is not taken") {
  Graph g;
  const Output x = values_of(g, DType::f64, {3}, {0, 4, kInf});
  const Output safe = select(x > 0, x, ones_like(x));  // what the documentation of Select advises
  const Output y = select(x > 0, log(safe), zeros_like(x));
  Interpreter run(g);
  check_near(wide(run, gradients_of(sum(y), {x})[0]), {0, 0.25, 0}, 1e-14);
}

}  // namespace troupe::test::extreme
