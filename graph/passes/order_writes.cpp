// Orders the writes of each variable and numbers read epochs (architecture.md 3, state).
//
//   read r0 --> ... --> write w0 ==> write w1 (control edge added here) --> read r1
//   epoch 0             epoch 0     epoch 1                                 epoch 2
//
// A read without a write among its ancestors sees the run's snapshot: epoch 0. Any other sees what
// the last write before it leaves: it has the effect of exactly the writes of its variable whose
// epoch is smaller than its own.
#include <algorithm>
#include <map>

#include "graph/detail/node_check.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

struct Uses {
  NodeId handle = kNoNode;     // the first of its handle nodes
  std::vector<NodeId> writes;  // in node order
  std::vector<NodeId> reads;
};

Status check_same_definition(const NodeDef& a, const NodeDef& b) {
  AttrMap left = a.attrs, right = b.attrs;
  left.erase("shared_name"), right.erase("shared_name");
  if (a.op == b.op && left == right) return ok_status();
  return in_node(invalid_argument("'" + b.name + "' and '" + a.name + "' (" + a.site.text() +
                                  ") share the name '" + resource_name(a) +
                                  "' but differ in dtype, shape or another attribute"),
                 b);
}

// Which resource each handle means, and that handles go straight to the ops that take them.
Expected<std::map<std::string, Uses>> find_uses(const GraphDef& graph, const OpRegistry& ops) {
  std::map<std::string, Uses> all;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    const Role role = role_of(node, ops);
    if (is_handle(role)) {
      auto [at, added] = all.try_emplace(resource_key(node, ops));
      if (added)
        at->second.handle = id;
      else
        TROUPE_TRY(check_same_definition(graph.nodes[at->second.handle], node));
      continue;
    }
    const std::size_t handles = handle_inputs(graph, node);
    if (touches_resource(role) && handles == 0)
      return in_node(invalid_argument("input 0 must be a handle"), node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeDef& source = graph.nodes[node.inputs[i].node];
      if (source.out_types[node.inputs[i].index] != DType::resource) continue;
      if (!touches_resource(role) || i >= handles || !is_handle(role_of(source, ops)))
        return in_node(invalid_argument("the handle '" + source.name +
                                        "' must go straight from its variable, queue or dataset "
                                        "to the op that uses it"),
                       node);
      if (Status s = detail::check_handle(op_of(node, ops), node, int(i), source); !s.ok())
        return in_node(s, node);
      Uses& uses = all[resource_key(source, ops)];
      auto& list = role == Role::write_variable ? uses.writes : uses.reads;
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  return all;
}

// For each node, 1 + the largest index in `writes` among its ancestors and itself; 0 for none.
// With `connect`, each write without the one before it among its ancestors gets a control edge.
std::vector<std::uint32_t> sweep(GraphDef& graph, const std::vector<NodeId>& writes, bool connect) {
  std::vector<std::uint32_t> seen(graph.nodes.size(), 0);
  std::uint32_t next = 0;
  for (NodeId id = writes.front(); id < graph.nodes.size(); ++id) {
    NodeDef& node = graph.nodes[id];
    for (Port in : node.inputs) seen[id] = std::max(seen[id], seen[in.node]);
    for (NodeId c : node.control) seen[id] = std::max(seen[id], seen[c]);
    if (next < writes.size() && writes[next] == id) {
      if (connect && seen[id] < next) {
        node.control.push_back(writes[next - 1]);
        std::sort(node.control.begin(), node.control.end());
      }
      seen[id] = ++next;
    }
  }
  return seen;
}

void set_epoch(NodeDef& node, std::uint32_t epoch) {
  node.attrs.insert_or_assign(std::string(kEpochAttr), Attr(std::int64_t(epoch)));
}

// Each write above all earlier ones of all its variables: epochs grow along every variable's chain.
void number_writes(GraphDef& graph, const std::map<std::string, Uses>& all) {
  std::map<NodeId, std::vector<const Uses*>> variables_of;
  for (const auto& [key, uses] : all)
    for (NodeId write : uses.writes) variables_of[write].push_back(&uses);
  std::map<const Uses*, std::uint32_t> next;
  for (const auto& [write, variables] : variables_of) {
    std::uint32_t epoch = 0;
    for (const Uses* v : variables) epoch = std::max(epoch, next[v]);
    for (const Uses* v : variables) next[v] = epoch + 1;
    set_epoch(graph.nodes[write], epoch);
  }
}

}  // namespace

std::uint32_t epoch_of(const NodeDef& node) {
  auto at = node.attrs.find(kEpochAttr);
  return at == node.attrs.end() ? 0 : std::uint32_t(*at->second.get<std::int64_t>());
}

Status order_writes(Step& step, const Target& target) {
  GraphDef& graph = step.graph;
  TROUPE_TRY(auto all, find_uses(graph, *target.ops));
  // All edges first: an edge for one variable makes more ancestors for another.
  for (auto& [key, uses] : all)
    if (uses.writes.size() > 1) sweep(graph, uses.writes, true);
  number_writes(graph, all);
  for (auto& [key, uses] : all) {
    if (uses.writes.empty() || uses.reads.empty() || uses.reads.back() < uses.writes.front())
      continue;
    const auto seen = sweep(graph, uses.writes, false);
    for (NodeId read : uses.reads)
      if (seen[read] > 0)
        set_epoch(graph.nodes[read], 1 + epoch_of(graph.nodes[uses.writes[seen[read] - 1]]));
  }
  return ok_status();
}

}  // namespace troupe
