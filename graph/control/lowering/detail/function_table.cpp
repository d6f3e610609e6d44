#include "graph/control/lowering/detail/function_table.hpp"

#include "graph/control/lowering/deadness.hpp"

namespace troupe::detail {

FunctionTable::FunctionTable(const std::vector<FunctionDef>& functions, const OpRegistry& ops)
    : functions_(functions), ops_(ops), recursion_(find_recursion(functions, ops)) {
  for (const FunctionDef& f : functions_) by_name_.emplace(f.name, &f);
}

const FunctionDef* FunctionTable::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

NodeId FunctionTable::find_node(const FunctionDef& f, const std::string& name) {
  auto [at, fresh] = nodes_of_.try_emplace(&f);
  if (fresh)
    for (NodeId id = 0; id < f.nodes.size(); ++id) at->second.emplace(f.nodes[id].name, id);
  const auto node = at->second.find(name);
  return node == at->second.end() ? kNoNode : node->second;
}

const std::vector<bool>& FunctionTable::may_die(const FunctionDef& f) {
  auto [at, fresh] = may_die_.try_emplace(&f);
  if (fresh) at->second = nodes_with_dead_outputs(f.nodes, ops_);
  return at->second;
}

}  // namespace troupe::detail
