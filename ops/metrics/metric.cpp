#include "ops/metrics/metric.hpp"

#include "ops/api/constant.hpp"

namespace troupe::metrics {

Tally tally(GraphBuilder& g, std::string_view name, DType dtype, const Shape& shape,
            const Site& site) {
  const Tensor zeros = value_or_throw(Tensor::zeros(dtype, shape));
  const Variable sum = variable(g, name, zeros, {.trainable = false}, site);
  auto inside = g.with_scope(sum.name() + "/");
  return {sum, assign(sum, constant(g, zeros, site), site)};
}

}  // namespace troupe::metrics
