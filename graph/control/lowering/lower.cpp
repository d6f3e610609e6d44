#include "graph/control/lowering/lower.hpp"

#include <algorithm>
#include <set>

#include "graph/control/functions/ops.hpp"
#include "graph/control/lowering/deadness.hpp"
#include "graph/control/lowering/detail/inliner.hpp"
#include "graph/detail/reorder.hpp"

namespace troupe {
namespace {

using detail::Inliner;
using detail::Lowered;
using detail::Place;
using detail::Value;

class Lowering {
 public:
  Lowering(StepGraph& step, const Target& target)
      : step_(step),
        ops_(*target.ops),
        functions_(std::move(step.graph.functions)),
        dying_(nodes_with_dead_outputs(step.graph.nodes, ops_)),
        followed_(step.graph.nodes.size(), false),
        fetched_(step.fetches.begin(), step.fetches.end()),
        out_(step),
        inliner_(functions_, ops_, out_) {
    for (const NodeDef& node : step.graph.nodes) {
      inliner_.writer().reserve_name(node.name);
      for (NodeId c : node.control) followed_[c] = true;
    }
    for (NodeId id : step.targets) followed_[id] = true;
  }

  Status run() {
    const auto& nodes = step_.graph.nodes;
    TROUPE_TRY(inliner_.check_size(nodes));
    for (NodeId id = 0; id < nodes.size(); ++id) {
      const Role role = role_of(nodes[id], ops_);
      if (role == Role::call) {
        TROUPE_TRY(lower_call(id));
      } else if (role == Role::saved && nodes[id].op != kSavedOp) {
        TROUPE_TRY(lower_saved(id));
      } else if (role == Role::saved && nodes[id].out_types[0] == DType::resource) {
        if (followed_[id])
          return in_node(invalid_argument("nothing can come after it: it does not run"), nodes[id]);
        TROUPE_TRY(Value run, saved(id));
        runs_.emplace(Port{id, 0}, run);
      } else if (role == Role::argument || role == Role::saved) {
        return in_node(invalid_argument("it belongs into the body of a function"), nodes[id]);
      } else {
        for (Port in : nodes[id].inputs)
          if (runs_.contains(in))
            return in_node(invalid_argument("it takes what a call saved, which is for gradient "
                                            "functions"),
                           nodes[id]);
        out_.keep(id);
      }
    }
    const detail::Loops::Moved moved = inliner_.settle_variables();
    TROUPE_TRY(const bool records, inliner_.settle_records());
    out_.finish();
    step_.targets.insert(step_.targets.end(), effects_.begin(), effects_.end());
    return moved.empty() && !records ? ok_status() : settle(moved);
  }

 private:
  Status lower_call(NodeId id) {
    NodeDef call = step_.graph.nodes[id];
    std::vector<Value> inputs, dying;
    for (Port in : call.inputs) {
      auto run = runs_.find(in);
      inputs.push_back(run == runs_.end() ? Value{.port = out_.port(in)} : run->second);
      // If a client's Switch leaves an input dead, the whole call is dead; so it is behind a node
      // that is dead.
      if (run == runs_.end() && dying_[in.node]) dying.push_back(inputs.back());
    }
    std::vector<NodeId> behind;
    for (NodeId& c : call.control) {
      const bool dies = dying_[c];
      c = out_.node(c);
      if (dies) behind.push_back(c);
    }
    Place place;
    if (!dying.empty() || !behind.empty())
      place.pivot = inliner_.writer().append_pivot(call, dying, behind, place);
    TROUPE_TRY(Lowered lowered, inliner_.lower(call, inputs, place, followed_[id]));
    for (std::uint32_t k = 0; k < lowered.outputs.size(); ++k) {
      // A fetch must be a node of the plan, which a feed is not.
      if (fetched_.contains({id, k}) &&
          out_.graph().nodes[lowered.outputs[k].port.node].op == kFeedOp)
        lowered.outputs[k].port = {inliner_.writer().append_result(call, lowered.outputs[k]), 0};
      if (k == saved_port(call))
        runs_.emplace(Port{id, k}, lowered.outputs[k]);
      else
        out_.map_port({id, k}, lowered.outputs[k].port);
    }
    if (!lowered.done.empty()) out_.map(id, lowered.done.front());
    effects_.insert(effects_.end(), lowered.effects.begin(), lowered.effects.end());
    return ok_status();
  }

  // The value of a node that reads what a loop saved, outside all loops.
  Expected<Value> saved(NodeId id) {
    const auto run = runs_.find(step_.graph.nodes[id].inputs[0]);
    return inliner_.saved(step_.graph.nodes[id], run == runs_.end() ? Value() : run->second);
  }
  Status lower_saved(NodeId id) {
    TROUPE_TRY(Value value, saved(id));
    out_.map_port({id, 0}, value.port);
    out_.map(id, value.port.node);
    return ok_status();
  }

  // Renumbers the outputs of loops that got more variables and invariants, and sorts the nodes: new
  // inputs of a loop may have been made after it.
  Status settle(const detail::Loops::Moved& moved) {
    std::vector<NodeDef>& nodes = step_.graph.nodes;
    for (NodeDef& node : nodes)
      for (Port& in : node.inputs)
        if (auto at = moved.find(in.node); at != moved.end()) in.index = at->second[in.index];
    const std::vector<NodeId> order = sorted(nodes);
    if (order.size() != nodes.size())
      return invalid_argument("a loop goes back over one that depends on it");
    std::vector<NodeId> place(nodes.size());
    for (NodeId to = 0; to < order.size(); ++to) place[order[to]] = to;
    detail::reorder(nodes, order, place);
    for (Port& fetch : step_.fetches) fetch.node = place[fetch.node];
    for (NodeId& target : step_.targets) target = place[target];
    return ok_status();
  }

  // Nodes in topological order, otherwise in their old order: writes of one variable are applied in
  // the order of their nodes. Incomplete if there is a cycle.
  static std::vector<NodeId> sorted(const std::vector<NodeDef>& nodes) {
    enum class Mark : std::uint8_t { none, open, done };
    std::vector<Mark> marks(nodes.size(), Mark::none);
    std::vector<NodeId> order, path, taken;
    for (NodeId id = 0; id < nodes.size(); ++id) {
      path.push_back(id);
      while (!path.empty()) {
        const NodeId at = path.back();
        taken.clear();
        if (marks[at] == Mark::none) {
          for (Port in : nodes[at].inputs) taken.push_back(in.node);
          taken.insert(taken.end(), nodes[at].control.begin(), nodes[at].control.end());
          std::erase_if(taken, [&](NodeId n) { return marks[n] == Mark::done; });
          std::sort(taken.begin(), taken.end(), std::greater<>());
        }
        if (marks[at] != Mark::done && taken.empty()) {
          marks[at] = Mark::done;
          order.push_back(at);
        }
        if (marks[at] == Mark::done) {
          path.pop_back();
          continue;
        }
        marks[at] = Mark::open;
        for (NodeId n : taken)
          if (marks[n] == Mark::open) return order;
        path.insert(path.end(), taken.begin(), taken.end());
      }
    }
    return order;
  }

  StepGraph& step_;
  const OpRegistry& ops_;
  const std::vector<FunctionDef> functions_;
  const std::vector<bool> dying_;
  std::vector<bool> followed_;  // another node comes after it
  const std::set<Port> fetched_;
  Rewriter out_;
  Inliner inliner_;
  std::map<Port, Value> runs_;  // by old `saved` port
  std::vector<NodeId> effects_;
};

}  // namespace

Status lower(StepGraph& step, const Target& target) {
  const auto& nodes = step.graph.nodes;
  const auto calls = std::count_if(nodes.begin(), nodes.end(), [&](const NodeDef& node) {
    const Role role = role_of(node, *target.ops);
    return role == Role::call || role == Role::argument || role == Role::saved;
  });
  if (calls == 0) {
    step.graph.functions.clear();
    return ok_status();
  }
  TROUPE_TRY(Lowering(step, target).run());
  step.notes.push_back("lower: " + std::to_string(calls) + " calls of functions");
  return prune(step, target);
}

}  // namespace troupe
