#include "graph/control/state/averages.hpp"

#include <algorithm>
#include <map>

#include "graph/control/functions/ops.hpp"

namespace troupe {
namespace {

bool training_only(const NodeDef& node) {
  if (!node.out_types.empty()) return false;
  const auto at = node.attrs.find(kTrainingOnlyAttr);
  const bool* value = at == node.attrs.end() ? nullptr : at->second.get<bool>();
  return value != nullptr && *value;
}

// The nodes that kMoveAveragesOp nodes request.
std::vector<bool> asked_for(const std::vector<NodeDef>& nodes) {
  std::vector<bool> asked(nodes.size(), false);
  for (const NodeDef& node : nodes)
    if (node.op == kMoveAveragesOp)
      for (NodeId id : node.control) asked[id] = true;
  return asked;
}

class LeaveOut {
 public:
  LeaveOut(StepGraph& step, const OpRegistry& ops)
      : step_(step), ops_(ops), moving_(functions_with_averages(step.graph.functions, ops)) {}

  void run() {
    if (moving_.empty()) return;
    rename_calls(step_.graph.nodes);
    // The copies may call further functions, which are then copied, too.
    for (std::size_t i = 0; i < made_.size(); ++i)
      step_.graph.functions.push_back(without(made_[i].first, made_[i].second));
  }

 private:
  void rename_calls(std::vector<NodeDef>& nodes) {
    const std::vector<bool> asked = asked_for(nodes);
    for (NodeId id = 0; id < nodes.size(); ++id) {
      if (asked[id] || role_of(nodes[id], ops_) != Role::call) continue;
      std::vector<std::string> names = functions_of(nodes[id]);
      if (std::none_of(names.begin(), names.end(),
                       [&](const std::string& name) { return moving_.contains(name); }))
        continue;
      for (std::string& name : names) name = still(name);
      set_functions_of(nodes[id].op, nodes[id].attrs, names);
    }
  }

  // The name of the function without averages.
  std::string still(const std::string& name) {
    if (!moving_.contains(name)) return name;
    auto [at, added] = still_.try_emplace(name, name + "@still");
    if (added) made_.emplace_back(name, at->second);
    return at->second;
  }

  FunctionDef without(const std::string& name, const std::string& as) {
    FunctionDef f = *step_.graph.function(name);
    f.name = as;
    rename_calls(f.nodes);
    const std::vector<bool> asked = asked_for(f.nodes);
    std::vector<NodeId> place(f.nodes.size(), kNoNode);
    std::vector<NodeDef> kept;
    for (NodeId id = 0; id < f.nodes.size(); ++id) {
      if (!asked[id] && training_only(f.nodes[id])) continue;
      place[id] = NodeId(kept.size());
      kept.push_back(std::move(f.nodes[id]));
    }
    for (NodeDef& node : kept) {
      for (Port& in : node.inputs) in.node = place[in.node];
      for (NodeId& c : node.control) c = place[c];
      std::erase(node.control, kNoNode);
    }
    f.nodes = std::move(kept);
    for (NodeId& argument : f.arguments) argument = place[argument];
    for (Port& result : f.results) result.node = place[result.node];
    return f;
  }

  StepGraph& step_;
  const OpRegistry& ops_;
  const std::set<std::string> moving_;
  std::map<std::string, std::string> still_;
  std::vector<std::pair<std::string, std::string>> made_;  // names of an original and its copy
};

}  // namespace

std::set<std::string> functions_with_averages(const std::vector<FunctionDef>& functions,
                                              const OpRegistry& ops) {
  std::set<std::string> found;
  std::map<std::string, std::vector<std::string>> callers;
  std::vector<std::string> open;
  const auto find = [&](const std::string& name) {
    if (found.insert(name).second) open.push_back(name);
  };
  for (const FunctionDef& f : functions)
    for (const NodeDef& node : f.nodes) {
      if (training_only(node)) find(f.name);
      if (role_of(node, ops) != Role::call) continue;
      for (const std::string& called : functions_of(node)) callers[called].push_back(f.name);
    }
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    for (const std::string& caller : callers[name]) find(caller);
  }
  return found;
}

void leave_out_averages(StepGraph& step, const OpRegistry& ops) { LeaveOut(step, ops).run(); }

}  // namespace troupe
