// What is a loss.
#include <doctest/doctest.h>

#include "ops/optim/optim.hpp"
#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using test::check_refused;
using test::Interpreter;

TEST_CASE("a loss of several numbers is refused with its shape") {
  Graph g;
  const Variable w = variable(g, "w", Tensor::of<float>(Shape{3, 1}, {1, 2, 3}));
  const Output x = placeholder<float>(g, {-1, 3}), many = mat_mul(x, w);
  check_refused({
      {"has shape [?,1], and a loss is one number", [&] { optim::Sgd{}.minimize(many); }},
      {"has shape [?,1]", [&] { optim::gradients(many, {w}); }},
      {"has shape [3,1]", [&] { optim::gradients(w.value()); }},
      {"has shape [?]", [&] { optim::gradients(sum(many, {.axes = {1}})); }},
  });
  CHECK(optim::gradients(mean(many)).size() == 1);
  CHECK(optim::gradients(sum(w.value(), {.keep_dims = true})).size() == 1);  // [1,1]
}

TEST_CASE("a loss of unknown shape trains where the run finds one number and fails where not") {
  Graph g;
  const Variable w = variable(g, "w", Tensor::scalar(1.0f));
  const Output x = placeholder(g, DType::f32, PartialShape::unknown());
  const Op train = optim::Sgd{.lr = 0.5}.minimize(w * x);
  Interpreter run(g);
  run.init();
  run.run({}, {train}, {{x.node(), Tensor::scalar(1.0f)}});
  CHECK(run.variable(w).item<float>() == 0.5f);
  const std::vector<NodeDef>& nodes = g.def().nodes;
  CHECK(std::any_of(nodes.begin(), nodes.end(),
                    [](const NodeDef& node) { return node.op == "EnsureShape"; }));
}
