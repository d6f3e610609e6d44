#include "ops/metrics/confusion.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/operators.hpp"

namespace troupe::metrics {

namespace {

// The number itself where it is a class, else one that no sum has a place for.
Output checked(Output x, std::int64_t classes, const Site& site) {
  const Output is_class = logical_and(Operand(x, site) >= Operand(0, site),
                                      Operand(x, site) < Operand(classes, site), site);
  return select(is_class, x, Operand(-1 - classes * classes, site).beside(x), site);
}

}  // namespace

Metric confusion(const Scope& scope, Output predictions, Output labels, std::int64_t classes,
                 Site site) {
  constexpr std::int64_t kMost = 1 << 15;
  if (classes < 1 || classes > kMost)
    throw Error(invalid_argument("confusion: 1 to " + std::to_string(kMost) + " classes").at(site));
  auto inside = scope.enter();
  predictions = of_one_shape(predictions, labels, "confusion", site);
  GraphBuilder& g = scope.graph();
  const Tally counts = tally(g, "counts", DType::i64, Shape{classes, classes}, site);
  const Output row = checked(cast<std::int64_t>(labels, site), classes, site);
  const Output column = checked(cast<std::int64_t>(predictions, site), classes, site);
  const Output place = Operand(row, site) * Operand(classes, site) + Operand(column, site);
  const Output flat = unsorted_segment_sum(ones_like(place, site), place,
                                           constant(g, classes * classes, site), site);
  const Op update = assign_add(
      counts.sum, reshape(flat, std::vector<std::int64_t>{classes, classes}, site), site);
  return {update, counts.sum, counts.reset};
}

}  // namespace troupe::metrics
