#include "ops/metrics/confusion.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"

namespace troupe::metrics {

namespace {

// The class numbers themselves. A run with one outside [0, classes) fails in a node under `name`,
// which says the number and its place.
Output checked(GraphBuilder& g, Output x, std::string_view name, std::int64_t classes,
               const Site& site) {
  auto inside = g.with_scope(name);
  const auto number = [&](std::int64_t value) { return constant(g, value, site); };
  return gather(range(number(0), number(classes), number(1), site), x, {}, site);
}

}  // namespace

Metric confusion(const Scope& scope, Output predictions, Output labels, std::int64_t classes,
                 Site site) {
  check_given("confusion: `predictions`", predictions, site);
  check_given("confusion: `labels`", labels, site);
  constexpr std::int64_t kMost = 1 << 15;
  if (classes < 1 || classes > kMost)
    throw Error(invalid_argument("confusion: 1 to " + std::to_string(kMost) + " classes").at(site));
  auto inside = scope.enter();
  predictions = of_one_shape(predictions, labels, "confusion", site);
  GraphBuilder& g = scope.graph();
  const Tally counts = tally(g, "counts", DType::i64, Shape{classes, classes}, site);
  const Output row = checked(g, labels, "labels", classes, site);
  const Output column = checked(g, predictions, "predictions", classes, site);
  const Output place = Operand(row, site) * Operand(classes, site) + Operand(column, site);
  const Output flat = unsorted_segment_sum(ones_like(place, site), place,
                                           constant(g, classes * classes, site), site);
  const Op update = assign_add(
      counts.sum, reshape(flat, std::vector<std::int64_t>{classes, classes}, site), site);
  return {update, counts.sum, counts.reset};
}

}  // namespace troupe::metrics
