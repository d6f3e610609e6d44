#include "graph/control/paper_loops/detail/client_loop.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/control/lowering/deadness.hpp"

namespace troupe::detail {
namespace {

class LoopReader {
 public:
  LoopReader(const std::vector<NodeDef>& nodes, const ClientFrames& frames, std::uint32_t f,
             const OpRegistry& ops)
      : nodes_(nodes), frames_(frames), ops_(ops) {
    loop_.frame = f;
  }

  Expected<ClientLoop> run() {
    TROUPE_TRY(order_, in_order(nodes_, frames_.frames[loop_.frame].nodes, ops_));
    for (NodeId id : order_) TROUPE_TRY(sort(id));
    if (loop_.cond == kNoNode) return bad("it has no LoopCond", order_.front());
    for (NodeId id : order_)
      if (role(id) == Role::merge) TROUPE_TRY(variable(id));
    if (loop_.variables.empty())
      return bad("no Merge joins an Enter and a NextIteration", loop_.cond);
    for (NodeId id : order_) TROUPE_TRY(check(id));
    TROUPE_TRY(check_ends());
    return share_out();
  }

 private:
  Role role(NodeId id) const { return role_of(nodes_[id], ops_); }
  bool inside(NodeId id) const {
    return frames_.of_node[id] == loop_.frame && !is_everywhere(nodes_[id], ops_);
  }
  // Whether it is a Switch on the loop's predicate.
  bool is_gate(NodeId id) const { return gates_.contains(id); }
  bool is_body(NodeId id) const { return behind_.contains(id); }

  Status bad(const std::string& why, NodeId at) const {
    std::vector<NodeId> words;
    for (NodeId id : order_)
      if (is_loop_role(role(id)) || is_gate(id) || merges_.contains(id)) words.push_back(id);
    return in_node(invalid_argument("the loop " + quoted(frames_.frames[loop_.frame].name) +
                                    " is none that can be run: " + why + "; it consists of " +
                                    nodes_text(nodes_, words)),
                   nodes_[at]);
  }

  // --- roles of the nodes ---

  Status sort(NodeId id) {
    const NodeDef& node = nodes_[id];
    switch (role(id)) {
      case Role::enter: {
        loop_.enters.push_back(id);
        const std::int64_t window = *node.attrs.at("parallel_iterations").get<std::int64_t>();
        loop_.window = loop_.window == 0 ? window : std::min(loop_.window, window);
        return ok_status();
      }
      case Role::loop_cond:
        if (loop_.cond != kNoNode)
          return bad("it has two LoopConds; loops beside each other have two frame names", id);
        loop_.cond = id;
        return ok_status();
      case Role::switch_:
        if (node.op != "Switch" || node.inputs[1].node != loop_.cond) return ok_status();
        gates_.insert(id);
        loop_.switches.push_back(id);
        return ok_status();
      case Role::exit:
        loop_.leaves.push_back(id);
        return ok_status();
      default:
        return ok_status();
    }
  }

  // Adds a variable if the Merge joins its first and its next value.
  Status variable(NodeId id) {
    const NodeDef& merge = nodes_[id];
    NodeId enter = kNoNode, next = kNoNode;
    for (Port in : merge.inputs) {
      if (role(in.node) == Role::next_iteration && inside(in.node)) next = in.node;
      if (is_variable(in.node) && inside(in.node)) enter = in.node;
    }
    if (next == kNoNode && enter == kNoNode) return ok_status();  // it joins branches of the client
    merges_.insert(id);
    if (next == kNoNode || enter == kNoNode || merge.inputs.size() != 2)
      return bad("its Merge " + quoted(merge.name) +
                     " does not join one Enter and one "
                     "NextIteration of the loop",
                 id);
    loop_.variables.push_back({enter, id, next});
    return ok_status();
  }

  // Whether it is an Enter of a variable, which has a value only in the first iteration.
  bool is_variable(NodeId id) const {
    return role(id) == Role::enter && !*nodes_[id].attrs.at("is_constant").get<bool>();
  }

  // --- connections ---

  Status check(NodeId id) {
    const NodeDef& node = nodes_[id];
    for (Port in : node.inputs)
      if (inside(in.node) && role(id) != Role::enter) TROUPE_TRY(check_edge(in, id));
    for (NodeId c : node.control) {
      if (!inside(c) || role(id) == Role::enter) continue;
      if (is_gate(c) || is_variable(c) || role(c) == Role::next_iteration)
        return bad(named(id) + " comes after " + named(c) + ", which is not of one iteration", id);
      if (is_body(c)) behind_.insert(id);
    }
    if (merges_.contains(id) && !node.control.empty())
      return bad(named(id) + " begins an iteration, and comes after something of it", id);
    if ((is_gate(id) || id == loop_.cond || role(id) == Role::exit) && is_body(id))
      return bad(named(id) + " needs what the predicate of its own iteration lets through", id);
    if (role(id) == Role::next_iteration && !is_body(id))
      return bad(named(id) + " does not need the predicate: it would go round for ever", id);
    if (role(id) == Role::exit && (!is_gate(node.inputs[0].node) || node.inputs[0].index != 0))
      return bad(named(id) + " does not take the output when_false of a Switch of the loop", id);
    return ok_status();
  }

  Status check_edge(Port in, NodeId to) {
    const bool leaves = role(to) == Role::exit;
    if (is_gate(in.node) && in.index == 0 && !leaves)
      return bad(named(to) + " takes what is over, and is not a Leave", to);
    if ((is_gate(in.node) && in.index == 1) || (is_body(in.node) && !merges_.contains(to)))
      behind_.insert(to);
    if (merges_.contains(in.node) && in.index != 0)
      return bad(named(to) + " asks whether this is the first iteration", to);
    if (!begins(in.node)) return ok_status();
    if (!merges_.contains(to))
      return bad(named(in.node) + " goes to " + named(to) + ", which is no Merge of the two", to);
    if (!joined_.insert(in.node).second) return bad(named(in.node) + " goes to two Merges", to);
    return ok_status();
  }

  Status check_ends() {
    for (NodeId id : order_)
      if (begins(id) && !joined_.contains(id))
        return bad(named(id) + " goes to no Merge of the loop", id);
    return ok_status();
  }

  // Whether it provides a variable's value at the beginning of an iteration.
  bool begins(NodeId id) const { return is_variable(id) || role(id) == Role::next_iteration; }
  std::string named(NodeId id) const { return nodes_text(nodes_, {id}); }

  // --- condition and body ---

  bool is_plain(NodeId id) const {
    return !is_loop_role(role(id)) && !is_gate(id) && !merges_.contains(id);
  }

  bool writes(NodeId id) const {
    const OpInfo& op = op_of(nodes_[id], ops_);
    return op.is(External::Order::write) || op.def.role == Role::call;
  }

  // The condition consists of the nodes that the predicate and the Switches need, and of stateful
  // nodes that do not depend on the Switches. All others are the body.
  Expected<ClientLoop> share_out() {
    std::vector<NodeId> open;
    std::unordered_set<NodeId> condition;
    auto need = [&](NodeId id) {
      if (inside(id) && !is_body(id) && condition.insert(id).second) open.push_back(id);
    };
    for (NodeId id : order_)
      if (is_gate(id) || id == loop_.cond || role(id) == Role::exit ||
          (is_plain(id) && op_of(nodes_[id], ops_).def.stateful))
        need(id);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (merges_.contains(id) || role(id) == Role::enter) continue;
      for (Port in : nodes_[id].inputs) need(in.node);
      for (NodeId c : nodes_[id].control) need(c);
    }
    for (NodeId id : order_) {
      if (!is_plain(id)) continue;
      (condition.contains(id) ? loop_.condition : loop_.body).push_back(id);
      loop_.condition_writes |= condition.contains(id) && writes(id);
    }
    for (NodeId id : order_)
      if (!is_plain(id) || !condition.contains(id))
        for (NodeId c : nodes_[id].control)
          if (inside(c) && is_plain(c) && condition.contains(c)) loop_.waited_for.push_back(c);
    return std::move(loop_);
  }

  const std::vector<NodeDef>& nodes_;
  const ClientFrames& frames_;
  const OpRegistry& ops_;
  ClientLoop loop_;
  std::vector<NodeId> order_;
  std::unordered_set<NodeId> gates_, merges_, joined_;
  std::unordered_set<NodeId> behind_;  // nodes that depend on a Switch of the loop
};

}  // namespace

Expected<ClientLoop> read_client_loop(const std::vector<NodeDef>& nodes, const ClientFrames& frames,
                                      std::uint32_t f, const OpRegistry& ops) {
  return LoopReader(nodes, frames, f, ops).run();
}

}  // namespace troupe::detail
