// Scaled losses: gradients that f16 alone would lose, and runs that are left out.
#include <doctest/doctest.h>

#include <limits>

#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using test::check_refused;
using test::Interpreter;

namespace {

// A loss whose gradient, `slope`, goes through f16.
struct HalfLoss {
  Graph g;
  Variable w = variable(g, "w", 1.f);
  Output slope = placeholder<float>(g, {});
  Output loss = cast<float>(cast(w, DType::f16)) * slope;

  std::map<NodeId, Tensor> fed(float value) const {
    return {{slope.node(), Tensor::scalar(value)}};
  }
};

Variable state_named(Graph& g, const std::string& name) {
  for (NodeId id = 0; id < g.def().nodes.size(); ++id)
    if (g.node(id).op == "Variable" && g.node(id).name == name) {
      const Output handle = Op(&g, id).output();
      return {handle, handle};
    }
  FAIL("there is no " << name);
  return {};
}

}  // namespace

TEST_CASE("gradients of a scaled loss are those of the loss, also where f16 has none") {
  HalfLoss net;
  const auto plain = optim::gradients(net.loss);
  const auto scaled = optim::LossScale{}.gradients(net.loss);
  REQUIRE(scaled.size() == 1);
  Interpreter run(net.g);
  run.init();
  const auto small = run.run({plain[0].value, scaled[0].value, scaled.when}, {}, net.fed(1e-8f));
  CHECK(small[0].item<float>() == 0);
  CHECK(small[1].item<float>() == doctest::Approx(1e-8f).epsilon(1e-3));
  CHECK(small[2].item<bool>());
  const auto usual = run.run({plain[0].value, scaled[0].value}, {}, net.fed(0.625f));
  CHECK(Tensor::same(usual[0], usual[1]));
}

TEST_CASE("a scale falls with gradients that are not finite, and grows while they are") {
  HalfLoss net;
  const auto gradients = optim::LossScale{.first = 4, .every = 2}.gradients(net.loss);
  const Op train = optim::Sgd{.lr = 1}.apply(gradients);
  const Variable scale = state_named(net.g, "loss_scale/scale");
  Interpreter run(net.g);
  run.init();
  const auto step = [&](float slope) {
    run.run({}, {train}, net.fed(slope));
    return run.variable(scale).item<float>();
  };
  CHECK(step(60000) == 2);  // 4 * 60000 is no f16
  CHECK(run.variable(net.w).item<float>() == 1);
  CHECK(step(60000) == 1);
  CHECK(step(std::numeric_limits<float>::infinity()) == 1);
  CHECK(run.variable(net.w).item<float>() == 1);
  CHECK(step(0.5) == 1);
  CHECK(step(0.5) == 2);
  CHECK(run.variable(net.w).item<float>() == 0);
  CHECK(step(0.5) == 2);
  CHECK(step(std::numeric_limits<float>::quiet_NaN()) == 1);  // and begins to count anew
  CHECK(step(0.5) == 1);
  CHECK(step(0.5) == 2);
  CHECK(run.variable(net.w).item<float>() == -1.5);
}

TEST_CASE("a scale that rounds, and losses that overflow with it, are refused") {
  HalfLoss net;
  const Output half = cast(net.loss, DType::f16);
  check_refused({
      {"a power of two", [&] { optim::LossScale{.first = 1000}.gradients(net.loss); }},
      {"a power of two", [&] { optim::LossScale{.first = 0.5}.gradients(net.loss); }},
      {"a power of two", [&] { optim::LossScale{.first = 1 << 25}.gradients(net.loss); }},
      {"every run at least", [&] { optim::LossScale{.every = 0}.gradients(net.loss); }},
      {"a loss of f16", [&] { optim::LossScale{}.gradients(half); }},
      {"LossScale: the loss is empty", [&] { optim::LossScale{}.gradients(Output()); }},
  });
}
