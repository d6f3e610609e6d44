#include "ops/optim/state.hpp"

#include "ops/api/constant.hpp"

namespace troupe::optim {

Variable zeros_beside(const Variable& beside, std::string_view name, DType dtype,
                      const Shape& shape, const Site& site) {
  GraphBuilder& g = beside.handle().graph();
  GraphBuilder::Outside outside(g);  // as the variable is, whatever body is open
  auto there = g.with_resource(beside.handle());
  auto near = g.with_colocation(beside.name());
  const Output dims =
      constant(g, Tensor::of<std::int64_t>(Shape{shape.rank()}, shape.dims()), site);
  const Output zero = constant(g, value_or_throw(scalar_of(dtype, std::int64_t{0})), site);
  const Output initial =
      g.add(NodeSpec{.op = "Fill", .inputs = {dims, zero}, .site = site}).output();
  const NodeDef& node = g.node(beside.handle().node());
  const std::string container = *node.attrs.at("container").get<std::string>();
  return variable(g, name, initial, {.trainable = false, .container = container}, site);
}

Variable slot_of(const Variable& parameter, std::string_view name, const Site& site) {
  auto inside = parameter.handle().graph().with_scope(parameter.name() + "/");
  return zeros_beside(parameter, name, parameter.dtype(), parameter.shape().shape(), site);
}

}  // namespace troupe::optim
