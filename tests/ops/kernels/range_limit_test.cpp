// Where a range ends.
#include "tests/ops/kernels/extreme_values.hpp"

namespace troupe::test::extreme {

TEST_CASE("a range never contains its limit") {
  const auto length = [](double start, double limit, double delta) {
    Graph g;
    const Output y = range(constant(g, start), constant(g, limit), constant(g, delta));
    Interpreter run(g);
    const Tensor t = run.run({y})[0];
    CHECK(y.shape() == PartialShape(t.shape()));
    for (double x : t.span<double>()) CHECK((delta > 0 ? x < limit : x > limit));
    return t.elements();
  };
  CHECK(length(0, 3 * .1, .1) == 3);
  CHECK(length(0, .3, .1) == 3);
  CHECK(length(0, -3 * .1, -.1) == 3);
  CHECK(length(1, 2, .1) == 10);
  CHECK(length(1e16, 1e16 + 8, 1) == 7);  // 1e16 + 7 is 1e16 + 8
  CHECK(length(0, 1, 1. / 3) == 3);
  CHECK(length(1, 1.3, .1) == 3);
  for (int i = 1; i < 200; ++i) length(0, i * .1, .1);
  Graph g;
  const Output y = range(constant(g, 0.f), constant(g, 3 * .1f), constant(g, .1f));
  Interpreter run(g);
  for (float x : run.run({y})[0].span<float>()) CHECK(x < 3 * .1f);
}

}  // namespace troupe::test::extreme
