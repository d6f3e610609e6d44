// ops/optim: what optimizers share, and what a program can do between gradients and updates.
#include <doctest/doctest.h>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

// An optimizer of the program's own: as far as the sign of the gradient says, less each time.
struct SignDescent {
  Operand lr = 1.0;

  Op update(const optim::Parameter& p) const {
    const Variable seen = p.slot("seen");
    const Output step = p.rate(lr, "lr") * sign(p.gradient()) / (seen + 1.0);
    return group(p.variable().handle().graph(),
                 {assign_sub(p.variable(), step), assign_add(seen, ones_like(seen))});
  }
  Op apply(const optim::Gradients& gradients, Site site = Site::here()) const {
    return optim::apply_rule(*this, gradients, site);
  }
};

}  // namespace

TEST_CASE("an optimizer of the program's own is a struct with an update") {
  Graph g;
  Variable v = variable(g, "v", Tensor::of<double>(Shape{2}, {1, -2}));
  Op train = SignDescent{}.apply(optim::gradients(sum(v * v)));
  Interpreter run(g);
  run.init();
  for (int i = 0; i < 2; ++i) run.run({}, {train});
  CHECK(Tensor::same(run.variable(v), Tensor::of<double>(Shape{2}, {0, -0.5})));
}

TEST_CASE("gradients that are changed on the way are what apply applies") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0)), w = variable(g, "w", Tensor::scalar(5.0));
  optim::Gradients gradients = optim::gradients(v * v + w * 4.0);
  REQUIRE(gradients.size() == 2);
  CHECK(gradients[0].variable.name() == "v");
  gradients[0].value = gradients[0].value * 10.0;
  Op train = optim::Sgd{.lr = 1.0}.apply(gradients);
  Interpreter run(g);
  run.init();
  run.run({}, {train});
  CHECK(run.variable(v).item<double>() == 3 - 60);
  CHECK(run.variable(w).item<double>() == 5 - 4);
}

TEST_CASE("apply refuses an empty list of gradients") {
  CHECK_THROWS_AS(optim::Adam{}.apply({}), Error);
}
