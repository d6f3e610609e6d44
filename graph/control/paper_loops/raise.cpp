#include "graph/control/paper_loops/raise.hpp"

#include <algorithm>
#include <unordered_set>

#include "graph/control/paper_loops/detail/raised_loop.hpp"
#include "graph/detail/reorder.hpp"

namespace troupe {
namespace {

using detail::ClientFrames;

bool has_loop_words(const std::vector<NodeDef>& nodes, const OpRegistry& ops) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const NodeDef& node) { return is_loop_role(role_of(node, ops)); });
}

// Raises all loops of a list of nodes, inner ones first. Nodes keep their numbers until the end; a
// While gets that of its LoopCond.
class Raising {
 public:
  Raising(std::vector<NodeDef>& nodes, detail::RaisedFunctions& functions, const OpRegistry& ops)
      : nodes_(nodes), functions_(functions), ops_(ops) {
    for (const NodeDef& node : nodes) names_.insert(node.name);
  }

  // `values` and `followed`: ports and nodes that are used outside of the list.
  Status run(std::vector<Port>& values, std::vector<NodeId>& followed) {
    TROUPE_TRY(frames_, detail::find_client_frames(nodes_, ops_));
    for (Port value : values) TROUPE_TRY(check_outside(value.node));
    for (NodeId id : followed) TROUPE_TRY(check_outside(id));
    for (std::uint32_t f : inner_first()) TROUPE_TRY(raise(f));
    TROUPE_TRY(auto order, detail::in_order(nodes_, std::move(frames_.frames[0].nodes), ops_));
    std::vector<NodeId> place(nodes_.size(), kNoNode);
    for (NodeId to = 0; to < order.size(); ++to) place[order[to]] = to;
    detail::reorder(nodes_, order, place);
    for (Port& value : values) value.node = place[value.node];
    for (NodeId& id : followed) id = place[id];
    return ok_status();
  }

 private:
  Status check_outside(NodeId id) const {
    std::uint32_t f = frames_.of_node[id];
    if (role_of(nodes_[id], ops_) == Role::exit) f = frames_.frames[f].parent;
    if (f == 0) return ok_status();
    return in_node(invalid_argument("is in the loop " + quoted(frames_.frames[f].name) +
                                    ", and only there; take its value out by a Leave"),
                   nodes_[id]);
  }

  std::vector<std::uint32_t> inner_first() const {
    const auto& frames = frames_.frames;
    std::vector<std::pair<std::size_t, std::uint32_t>> by_depth;
    for (std::uint32_t f = 1; f < frames.size(); ++f) {
      std::size_t depth = 0;
      for (std::uint32_t p = f; p != 0; p = frames[p].parent) ++depth;
      by_depth.emplace_back(depth, f);
    }
    std::sort(by_depth.begin(), by_depth.end(), std::greater<>());
    std::vector<std::uint32_t> out;
    for (const auto& [depth, f] : by_depth) out.push_back(f);
    return out;
  }

  Status raise(std::uint32_t f) {
    TROUPE_TRY(const detail::ClientLoop loop, detail::read_client_loop(nodes_, frames_, f, ops_));
    // The LoopCond's name will be free.
    const std::string& wanted = frames_.frames[f].name;
    const std::string name = names_.insert(wanted).second ? wanted : nodes_[loop.cond].name;
    TROUPE_TRY(auto left, detail::raise_loop(loop, name, nodes_, frames_, functions_, ops_));
    const std::uint32_t around = frames_.frames[f].parent;
    for (NodeId id : left) {
      frames_.of_node[id] = around;
      frames_.frames[around].nodes.push_back(id);
    }
    return ok_status();
  }

  std::vector<NodeDef>& nodes_;
  detail::RaisedFunctions& functions_;
  const OpRegistry& ops_;
  ClientFrames frames_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Status raise_loops(StepGraph& step, const Target& target) {
  GraphDef& graph = step.graph;
  detail::RaisedFunctions functions(graph.functions);
  for (FunctionDef& f : graph.functions) {
    if (!has_loop_words(f.nodes, *target.ops)) continue;
    Raising raising(f.nodes, functions, *target.ops);
    if (Status s = raising.run(f.results, f.arguments); !s.ok())
      return s.in("in function " + quoted(f.name));
  }
  if (has_loop_words(graph.nodes, *target.ops))
    TROUPE_TRY(Raising(graph.nodes, functions, *target.ops).run(step.fetches, step.targets));
  for (FunctionDef& f : functions.take()) graph.functions.push_back(std::move(f));
  return ok_status();
}

}  // namespace troupe
