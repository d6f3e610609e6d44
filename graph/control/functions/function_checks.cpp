#include "graph/control/functions/function_checks.hpp"

#include "core/name.hpp"
#include "graph/detail/value_type.hpp"
#include "graph/node_query.hpp"

namespace troupe {
namespace {

// Argument nodes and handles must be arguments; a body has no placeholders.
Status check_roles(const FunctionDef& f, const OpRegistry& ops) {
  std::vector<bool> argument(f.nodes.size(), false);
  for (NodeId id : f.arguments) argument[id] = true;
  for (NodeId id = 0; id < f.nodes.size(); ++id) {
    const Role role = role_of(f.nodes[id], ops);
    if (!argument[id] && (role == Role::argument || is_handle(role)))
      return in_node(invalid_argument("it is none of the function's arguments"), f.nodes[id]);
    if (role == Role::placeholder)
      return in_node(invalid_argument("a placeholder in a body cannot be fed"), f.nodes[id]);
  }
  return ok_status();
}

Status check_results(const FunctionDef& f) {
  for (std::size_t i = 0; i < f.results.size(); ++i) {
    const Port port = f.results[i];
    const std::string what = "result " + std::to_string(i);
    if (port.node >= f.nodes.size() || port.index >= f.nodes[port.node].out_types.size())
      return invalid_argument(what + " is no output of a node of the body");
    const NodeDef& node = f.nodes[port.node];
    if (node.out_types[port.index] == DType::resource)
      return in_node(invalid_argument(what + " is a handle, which no function returns"), node);
    if (!detail::may_keep({f.result_types[i], f.result_shapes[i]},
                          {node.out_types[port.index], node.out_shapes[port.index]}))
      return in_node(invalid_argument(what + " is not what the function says it returns"), node);
  }
  return ok_status();
}

}  // namespace

Status check_signature(const FunctionDef& f, const OpRegistry& ops) {
  if (f.nodes.size() > (std::size_t{1} << 24)) return invalid_argument("has too many nodes");
  if (f.arguments.size() > f.nodes.size())
    return invalid_argument("has arguments that are no nodes");
  std::vector<bool> seen(f.nodes.size(), false);
  for (NodeId id : f.arguments) {
    if (id >= f.nodes.size())
      return invalid_argument("an argument is node number " + std::to_string(id) + " of " +
                              std::to_string(f.nodes.size()));
    if (seen[id]) return invalid_argument("two arguments are one node");
    seen[id] = true;
    const NodeDef& node = f.nodes[id];
    const OpInfo* op = ops.find(node.op);
    if (!op || (op->def.role != Role::argument && !is_handle(op->def.role)))
      return invalid_argument("argument " + quoted(node.name) +
                              " is neither an Argument nor a "
                              "handle, but " +
                              quoted(node.op));
    if (!node.inputs.empty() || !node.control.empty())
      return invalid_argument("argument " + quoted(node.name) + " has inputs");
  }
  if (f.result_types.size() != f.results.size() || f.result_shapes.size() != f.results.size())
    return invalid_argument("says of " + std::to_string(f.results.size()) + " results " +
                            std::to_string(f.result_types.size()) + " types and " +
                            std::to_string(f.result_shapes.size()) + " shapes");
  // Whether the node has that output is checked with the body.
  for (std::size_t i = 0; i < f.results.size(); ++i)
    if (f.results[i].node >= f.nodes.size())
      return invalid_argument("result " + std::to_string(i) +
                              " is no output of a node of the body");
  return ok_status();
}

Status check_body(const FunctionDef& f, const OpRegistry& ops) {
  TROUPE_TRY(check_roles(f, ops));
  return check_results(f);
}

}  // namespace troupe
