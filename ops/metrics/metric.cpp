#include "ops/metrics/metric.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"

namespace troupe::metrics {

Output of_one_shape(Output predictions, Output labels, std::string_view what, const Site& site) {
  const PartialShape &p = predictions.shape(), &l = labels.shape();
  if (!PartialShape::merge(p, l).ok())
    throw Error(invalid_argument(std::string(what) + ": predictions are " + p.text() +
                                 " and labels " + l.text() + "; their shapes must be equal")
                    .at(site));
  if (p.fully_known() && l.fully_known()) return predictions;
  return ensure_same_shape(predictions, labels, site);
}

Tally tally(GraphBuilder& g, std::string_view name, DType dtype, const Shape& shape,
            const Site& site) {
  auto made = Tensor::zeros(dtype, shape);
  if (!made.ok()) throw Error(made.status().at(site));
  const Tensor zeros = std::move(made).value();
  const Variable sum = variable(g, name, zeros, {.trainable = false}, site);
  auto inside = g.with_scope(sum.name() + "/");
  return {sum, assign(sum, constant(g, zeros, site), site)};
}

}  // namespace troupe::metrics
