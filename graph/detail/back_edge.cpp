#include "graph/detail/back_edge.hpp"

namespace troupe::detail {

bool is_back_edge(const NodeDef& from, const NodeDef& to, const OpRegistry& ops) {
  auto is = [&](const NodeDef& node, Role role) {
    const OpInfo* op = ops.find(node.op);
    return op && op->def.role == role;
  };
  return is(to, Role::merge) && is(from, Role::next_iteration);
}

Status check_back_edge(const NodeDef& merge, DType dtype, const PartialShape& shape) {
  auto differs = [&](const std::string& before, const std::string& after) {
    return invalid_argument("loop variable '" + merge.name + "' enters " + before + " but is " +
                            after + " after one iteration")
        .at(merge.site);
  };
  if (dtype != merge.out_types[0])
    return differs("as " + std::string(dtype_name(merge.out_types[0])),
                   std::string(dtype_name(dtype)));
  if (!PartialShape::merge(merge.out_shapes[0], shape).ok())
    return differs("with shape " + merge.out_shapes[0].text(), "of shape " + shape.text());
  return ok_status();
}

}  // namespace troupe::detail
