#include "graph/detail/partial_gradient.hpp"

#include "graph/gradients.hpp"

namespace troupe::detail {

std::string op_that_adds(const Output& gradient) {
  const NodeDef& node = gradient.graph().node(gradient.node());
  return gradient.graph().registry().find(node.op)->def.added;
}

NodeSpec added_to(const Output& sum, const Output& gradient) {
  const NodeDef& node = gradient.graph().node(gradient.node());
  NodeSpec spec{.op = op_that_adds(gradient), .inputs = {sum}, .attrs = node.attrs};
  for (Port p : node.inputs) {
    const Output input(&gradient.graph(), p);
    spec.inputs.push_back(input.dtype() == gradient.dtype() ? of_dtype(input, sum.dtype()) : input);
  }
  if (sum.dtype() != gradient.dtype()) spec.attrs.erase("T");
  spec.site = node.site;
  return spec;
}

}  // namespace troupe::detail
