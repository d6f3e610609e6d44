#include "ops/metrics/mean.hpp"

#include "ops/api/math.hpp"
#include "ops/api/node.hpp"

namespace troupe::metrics {

Metric mean(const Scope& scope, Output values, Site site) {
  check_given("mean: `values`", values, site);
  auto inside = scope.enter();
  GraphBuilder& g = scope.graph();
  const Tally total = tally(g, "total", DType::f64, Shape{}, site),
              count = tally(g, "count", DType::i64, Shape{}, site);
  const Op add_values = assign_add(total.sum, sum(cast<double>(values, site), {}, site), site);
  const Op add_count = assign_add(count.sum, size(values, {}, site), site);
  return {group(g, {add_values, add_count}, "update", site),
          div(total.sum, cast<double>(count.sum, site), site),
          group(g, {total.reset, count.reset}, "reset", site)};
}

Metric accuracy(const Scope& scope, Output predictions, Output labels, Site site) {
  check_given("accuracy: `predictions`", predictions, site);
  check_given("accuracy: `labels`", labels, site);
  auto inside = scope.enter();
  predictions = of_one_shape(predictions, labels, "accuracy", site);
  return mean(scope, equal(predictions, labels, site), site);
}

}  // namespace troupe::metrics
