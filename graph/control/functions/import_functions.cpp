// Functions from outside: each body is a graph, and holds to what the function says of itself.
#include <algorithm>

#include "graph/control/functions/ops.hpp"
#include "graph/detail/node_check.hpp"
#include "graph/detail/suggest.hpp"
#include "graph/detail/value_type.hpp"
#include "graph/import.hpp"
#include "graph/node_query.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMostFunctions = std::size_t{1} << 16;

Status in_function(const Status& status, const FunctionDef& f) {
  return status.at(f.site).in("in function " + quoted(f.name));
}

// What others go by, before anybody looked into the body: arguments that are nodes of their own.
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
  // Which output of it there is, is known when the body is.
  for (std::size_t i = 0; i < f.results.size(); ++i)
    if (f.results[i].node >= f.nodes.size())
      return invalid_argument("result " + std::to_string(i) +
                              " is no output of a node of the body");
  return ok_status();
}

// Nodes that only an argument may be, and those that a body cannot have.
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

const FunctionDef* GraphImport::function(std::string_view name) const {
  const GraphImport& known = around_ ? *around_ : *this;
  auto at = known.functions_.find(std::string(name));
  return at == known.functions_.end() ? nullptr : &known.graph_.functions[at->second];
}

// Arguments first, of all: bodies may call whatever function there is.
Status GraphImport::add_functions(std::vector<FunctionDef> functions) {
  const std::size_t first = graph_.functions.size();
  if (first + functions.size() > kMostFunctions)
    return invalid_argument("the graph has more than " + std::to_string(kMostFunctions) +
                            " functions");
  for (FunctionDef& f : functions) {
    TROUPE_TRY(detail::check_site(f.site));
    if (!valid_node_name(f.name))
      return invalid_argument(quoted(f.name) + " is no name of a function").at(f.site);
    if (!functions_.emplace(f.name, graph_.functions.size()).second)
      return invalid_argument("two functions are both named " + quoted(f.name)).at(f.site);
    graph_.functions.push_back(std::move(f));
  }
  for (std::size_t i = first; i < graph_.functions.size(); ++i) {
    FunctionDef& f = graph_.functions[i];
    if (Status s = check_signature(f, registry_); !s.ok()) return in_function(s, f);
    for (NodeId id : f.arguments) {
      // On its own, so that calls can be checked before its body is.
      GraphImport alone(registry_);
      alone.around_ = this;
      alone.counted_ = counted_;
      NodeDef argument = f.nodes[id];
      argument.colocate.clear();
      if (Status s = alone.extend({std::move(argument)}); !s.ok()) return in_function(s, f);
      f.nodes[id].out_types = alone.graph_.nodes[0].out_types;
      f.nodes[id].out_shapes = alone.graph_.nodes[0].out_shapes;
      if (f.nodes[id].out_types.size() != 1)
        return in_function(invalid_argument("an argument has one output"), f);
    }
  }
  for (std::size_t i = first; i < graph_.functions.size(); ++i) {
    FunctionDef f = graph_.functions[i];  // calls look at the others, and at this one
    if (Status s = check_body(f); !s.ok()) return in_function(s, f);
    graph_.functions[i] = std::move(f);
  }
  return ok_status();
}

Status GraphImport::check_body(FunctionDef& f) const {
  GraphImport body(registry_, graph_.seed);
  body.around_ = this;
  body.counted_ = counted_;
  TROUPE_TRY(body.extend(f.nodes));
  if (!body.in_order_) return invalid_argument("its nodes do not come after what they need");
  f.nodes = std::move(body.graph_.nodes);
  TROUPE_TRY(check_roles(f, registry_));
  return check_results(f);
}

}  // namespace troupe
