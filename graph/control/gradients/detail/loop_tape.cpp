#include "graph/control/gradients/detail/loop_tape.hpp"

#include "graph/node_query.hpp"

namespace troupe::detail {

LoopTape::LoopTape(GraphBuilder& g, const NodeDef& loop)
    : loop_(loop),
      function_(functions_of(loop_)[1]),
      variables_(loop_variables(loop_)),
      tape_(tape_of(*g.root().function(function_))) {
  for (std::size_t i = 0; i < tape_.inputs.size(); ++i) inputs_.emplace(tape_.inputs[i].node, i);
}

const OpDef& LoopTape::op_of(NodeId id) const {
  return builder().registry().find(node(id).op)->def;
}

std::size_t LoopTape::input_of(NodeId id) const {
  const auto at = inputs_.find(id);
  return at == inputs_.end() ? tape_.inputs.size() : at->second;
}

bool LoopTape::is_invariant(NodeId id) const {
  const std::size_t input = input_of(id);
  return input >= variables_ && input < tape_.inputs.size();
}

bool LoopTape::is_variable_handle(NodeId id) const {
  return is_handle(op_of(id).role) && op_of(id).external.resource == "variable";
}

bool LoopTape::is_saved(Port p) const {
  return op_of(p.node).role == Role::call && p.index == saved_port(node(p.node));
}

}  // namespace troupe::detail
