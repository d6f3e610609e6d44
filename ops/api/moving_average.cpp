#include "ops/api/moving_average.hpp"

#include <algorithm>
#include <set>

#include "graph/control/functions/ops.hpp"
#include "graph/control/state/averages.hpp"
#include "ops/api/each_variable.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"

namespace troupe {

namespace {

// By node: what `y` is computed from, y included.
std::vector<bool> computed_from(const GraphBuilder& g, Output y) {
  std::vector<bool> reached(y.node() + 1, false);
  reached[y.node()] = true;
  for (NodeId id = y.node() + 1; id-- > 0;)
    if (reached[id])
      for (Port p : g.node(id).inputs)
        if (p.node < id) reached[p.node] = true;
  return reached;
}

bool runs_any(const NodeDef& node, const std::set<std::string>& functions, const OpRegistry& ops) {
  if (functions.empty() || op_of(node, ops).def.role != Role::call) return false;
  const std::vector<std::string> run = functions_of(node);
  return std::any_of(run.begin(), run.end(),
                     [&](const std::string& name) { return functions.contains(name); });
}

}  // namespace

Op move_average(const Variable& average, double rate, Output value, Site site) {
  check_given("move_average: the average", average.handle(), site);
  check_given("move_average: the value", value, site);
  const Output share = Operand(rate, site).beside(average.value());
  auto there = average.handle().graph().with_resource(average.handle());
  return add_node({.op = "ApplyMovingAverage",
                   .inputs = {average.handle(), share, value},
                   .attrs = {{std::string(kTrainingOnlyAttr), true}},
                   .site = std::move(site)});
}

Op move_average(const std::vector<Variable>& averages, double rate, const std::vector<Variable>& of,
                const std::vector<Op>& after, Site site) {
  return each_variable(
      "move_average", averages, of, after,
      [&](const Variable& v, const Output& value) { return move_average(v, rate, value, site); },
      site);
}

std::vector<Op> moving_averages(Output y, Site site) {
  check_given("moving_averages: y", y, site);
  GraphBuilder& g = y.graph();
  const std::vector<bool> reached = computed_from(g, y);
  const std::set<std::string> moving =
      functions_with_averages(g.root().def().functions, g.registry());
  std::vector<Op> updates, asked;
  for (NodeId id = 0; id < g.def().nodes.size(); ++id) {
    const NodeDef& node = g.node(id);
    if (id < reached.size() && reached[id] && runs_any(node, moving, g.registry()))
      asked.emplace_back(&g, id);
    if (node.op != "ApplyMovingAverage") continue;
    const NodeId value = node.inputs[2].node;
    if (value < reached.size() && reached[value]) updates.emplace_back(&g, id);
  }
  if (g.body()) asked.insert(asked.end(), updates.begin(), updates.end());
  if (!asked.empty()) {
    if (&g.innermost() != &g)
      throw Error(invalid_argument("moving_averages: '" + y.name() +
                                   "' is made outside of the body that is open here")
                      .at(g.node(y.node()).site));
    updates.push_back(g.add(NodeSpec{.op = std::string(kMoveAveragesOp), .control = asked}));
  }
  return updates;
}

}  // namespace troupe
