#include "ops/api/math.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"

namespace troupe {

Output argmax(Output x, std::int64_t axis, Site site) {
  return arg_max(x, {.axis = axis}, std::move(site));
}

Output reshape(Output x, const std::vector<std::int64_t>& shape, Site site) {
  if (x.empty()) throw Error(invalid_argument("reshape: x is empty").at(site));
  const Tensor dims = Tensor::of<std::int64_t>(Shape{std::int64_t(shape.size())}, shape);
  const Output constant_dims = constant(x.graph(), dims, site);
  return reshape(x, constant_dims, std::move(site));
}

Output flatten(Output x, Site site) {
  const PartialShape shape = x.shape();
  std::int64_t size = 1;
  bool known = shape.known_rank() && shape.rank() >= 1;
  for (int i = 1; known && i < shape.rank(); ++i) {
    known = shape.known(i);
    size *= shape[i];
  }
  if (!known)
    throw Error(invalid_argument("flatten: every dimension of '" + x.name() +
                                 "' but the first must be known, not " + shape.text())
                    .at(site));
  // Named, because -1 cannot be told when a dimension is 0.
  return reshape(x, {shape.known(0) ? shape[0] : -1, size}, std::move(site));
}

Output softmax_cross_entropy(Output logits, Output labels, Site site) {
  const char* op = is_integer(labels.dtype()) ? "SparseSoftmaxCrossEntropyWithLogits"
                                              : "SoftmaxCrossEntropyWithLogits";
  return add_node({.op = op, .inputs = {logits, labels}, .site = std::move(site)}).output();
}

Output max_pool(Output x, std::int64_t size, Site site) {
  return max_pool(x, {size, size}, {size, size}, {}, std::move(site));
}

Output avg_pool(Output x, std::int64_t size, Site site) {
  return avg_pool(x, {size, size}, {size, size}, {}, std::move(site));
}

Output dropout(Output x, double rate, Site site) {
  if (!(rate >= 0 && rate < 1))
    throw Error(invalid_argument("dropout: the rate must be in [0, 1)").at(site));
  // A shape that is not known is looked at when the step runs.
  const Output draw = x.shape().fully_known()
                          ? random_uniform(x.graph(), x.shape(), {.dtype = x.dtype()}, site)
                          : random_uniform_like(x, {}, site);
  const Output kept = cast(Operand(draw, site) >= Operand(rate, site), x.dtype(), site);
  return Operand(Operand(x, site) * Operand(kept, site), site) * Operand(1 / (1 - rate), site);
}

}  // namespace troupe
