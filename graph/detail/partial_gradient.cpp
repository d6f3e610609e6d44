#include "graph/detail/partial_gradient.hpp"

namespace troupe::detail {

std::string op_that_adds(const Output& gradient) {
  const NodeDef& node = gradient.graph().node(gradient.node());
  return gradient.graph().registry().find(node.op)->def.added;
}

NodeSpec added_to(const Output& sum, const Output& gradient) {
  const NodeDef& node = gradient.graph().node(gradient.node());
  NodeSpec spec{.op = op_that_adds(gradient), .inputs = {sum}, .attrs = node.attrs};
  for (Port p : node.inputs) spec.inputs.emplace_back(&gradient.graph(), p);
  spec.site = node.site;
  return spec;
}

}  // namespace troupe::detail
