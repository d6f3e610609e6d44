#include "ops/api/moving_average.hpp"

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

}  // namespace

Op move_average(const Variable& average, double rate, Output value, Site site) {
  const Output share = Operand(rate, site).beside(average.value());
  auto there = average.handle().graph().with_resource(average.handle());
  return add_node({.op = "ApplyMovingAverage",
                   .inputs = {average.handle(), share, value},
                   .site = std::move(site)});
}

std::vector<Op> moving_averages(Output y) {
  GraphBuilder& g = y.graph();
  const std::vector<bool> reached = computed_from(g, y);
  std::vector<Op> updates;
  for (NodeId id = 0; id < g.def().nodes.size(); ++id) {
    const NodeDef& node = g.node(id);
    if (node.op != "ApplyMovingAverage") continue;
    const NodeId value = node.inputs[2].node;
    if (value < reached.size() && reached[value]) updates.emplace_back(&g, id);
  }
  return updates;
}

}  // namespace troupe
