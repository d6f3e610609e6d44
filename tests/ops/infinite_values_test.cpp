// Infinities and NaN in functions, and in what is left out.
#include "tests/ops/extreme_values.hpp"

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

}  // namespace troupe::test::extreme
