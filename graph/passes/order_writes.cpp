// Orders the writes of each variable and numbers read epochs.
//
//   read r0 --> ... --> write w0 ==> write w1 (control edge added here) --> read r1
//   epoch 0             epoch 0     epoch 1                                 epoch 2
//
// A read without a write among its ancestors sees the run's snapshot: epoch 0. Any other read sees
// the result of the last write before it, which is the effect of exactly the writes of its variable
// with a smaller epoch.
//
// If a write is in a branch that is not taken, it does not happen, but nodes after it run. The
// added edge then passes through a ControlTrigger, which is never dead.
//
// A Merge waits only for the branch that was taken. So nodes after a Merge see the writes of each
// of its branches, if they happened, but do not wait for them: they get edges of their own, as does
// the next write. (In a loop a Merge waits for all branches.)
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include "graph/control/lowering/deadness.hpp"
#include "graph/control/lowering/frames.hpp"
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

// "Enqueue" or "Enqueue of [f32]", for errors.
std::string op_and_types(const NodeDef& node) {
  for (const char* name : {"T", "types"})
    if (auto it = node.attrs.find(name); it != node.attrs.end())
      return node.op + " of " + it->second.text();
  return node.op;
}

// All handles have the same dtype, so this detects e.g. a queue's handle in place of a variable's.
Status check_kind(const OpInfo& op, const NodeDef& node, const NodeDef& handle,
                  const OpRegistry& ops) {
  const std::string& kind = op_of(handle, ops).def.external.resource;
  const std::string& wanted = op.def.external.resource;  // "*": any that is read as a whole
  if (kind == wanted || (wanted == "*" && kind != "variable" && kind != "dataset"))
    return ok_status();
  return in_node(invalid_argument(op_and_types(node) + " cannot use the handle '" + handle.name +
                                  "' (" + op_and_types(handle) + ")"),
                 node);
}

// Finds the resource of each handle, and checks that handles go directly to the ops that use them.
Expected<std::map<std::string, Uses>> find_uses(const GraphDef& graph, const OpRegistry& ops) {
  std::map<std::string, Uses> all;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    const OpInfo& op = op_of(node, ops);
    if (is_handle(op.def.role)) {
      auto [at, added] = all.try_emplace(resource_key(node, ops));
      if (added)
        at->second.handle = id;
      else
        TROUPE_TRY(check_same_definition(graph.nodes[at->second.handle], node));
      continue;
    }
    const std::size_t handles = handle_inputs(graph, node);
    if (op.takes_handles() && handles == 0)
      return in_node(invalid_argument("input 0 must be a handle"), node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeDef& source = graph.nodes[node.inputs[i].node];
      if (source.out_types[node.inputs[i].index] != DType::resource) continue;
      if (!op.takes_handles() || i >= handles || !is_handle(role_of(source, ops)))
        return in_node(invalid_argument("the handle '" + source.name +
                                        "' must go straight from its variable, queue or dataset "
                                        "to the op that uses it"),
                       node);
      TROUPE_TRY(check_kind(op, node, source, ops));
      if (Status s = detail::check_handle(op, node, int(i), source); !s.ok())
        return in_node(s, node);
      Uses& uses = all[resource_key(source, ops)];
      if (op.is(External::Order::none)) continue;
      auto& list = op.is(External::Order::write) ? uses.writes : uses.reads;
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  return all;
}

// Visits only the nodes after the writes of one variable.
class Descendants {
 public:
  Descendants(const GraphDef& graph, const Frames& frames, const OpRegistry& ops)
      : graph_(graph), frames_(frames), ops_(ops), successors_(graph.nodes.size()) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      for (Port in : graph.nodes[id].inputs)
        if (in.node < id) successors_[in.node].push_back(id);
      for (NodeId c : graph.nodes[id].control) successors_[c].push_back(id);
    }
  }

  // The writes before a node, by index + 1; 0: none.
  struct Before {
    std::uint32_t seen = 0;        // the last one among its ancestors and itself
    std::uint32_t waited_for = 0;  // the last one before it, whatever branches are taken
  };
  // The result contains each node up to `last` that is one of `writes` or comes after one. A write
  // that does not wait for the one before it yet gets an edge from it.
  using Found = std::unordered_map<NodeId, Before>;
  Found connect_writes(const std::vector<NodeId>& writes, NodeId last) {
    return sweep(writes, last, {});
  }
  // The same for reads, which wait for all writes that they see.
  Found connect_reads(const std::vector<NodeId>& writes, const std::vector<NodeId>& reads) {
    return sweep(writes, reads.back(), reads);
  }

  // The added edges, by target node.
  const std::map<NodeId, std::vector<NodeId>>& added() const { return added_; }

 private:
  Found sweep(const std::vector<NodeId>& writes, NodeId last, const std::vector<NodeId>& reads) {
    Found found;
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> open;
    auto reach = [&](NodeId id, Before before) {
      if (id > last) return;
      auto [at, added] = found.try_emplace(id, before);
      if (added) return open.push(id);
      at->second.seen = std::max(at->second.seen, before.seen);
      at->second.waited_for = std::max(at->second.waited_for, before.waited_for);
    };
    std::uint32_t next = 0;
    auto read = reads.begin();
    for (NodeId write : writes) reach(write, {});
    while (!open.empty()) {
      const NodeId id = open.top();  // all relevant ancestors were visited before
      open.pop();
      Before& before = found.at(id);
      if (waits_for_one(id)) before.waited_for = after_any_branch(id, found);
      while (read != reads.end() && *read < id) ++read;
      if (read != reads.end() && *read == id && before.waited_for < before.seen) {
        add_edge(writes[before.seen - 1], id);
        before.waited_for = before.seen;
      }
      if (next < writes.size() && writes[next] == id) {
        if (before.waited_for < next) add_edge(writes[next - 1], id);
        before.seen = before.waited_for = ++next;
      }
      for (NodeId successor : successors_[id]) reach(successor, found.at(id));
    }
    return found;
  }

  bool waits_for_one(NodeId id) const {
    return role_of(graph_.nodes[id], ops_) == Role::merge && frames_.of_node[id] == 0;
  }

  std::uint32_t after_any_branch(NodeId merge, const Found& found) const {
    const auto of = [&](NodeId id) {
      auto at = found.find(id);
      return at == found.end() ? 0 : at->second.waited_for;
    };
    const NodeDef& node = graph_.nodes[merge];
    std::uint32_t least = ~std::uint32_t{0}, most = 0;
    for (Port in : node.inputs) least = std::min(least, of(in.node));
    for (NodeId c : node.control) most = std::max(most, of(c));
    return std::max(node.inputs.empty() ? 0 : least, most);
  }

  // Loops and functions that stay begin and end as a whole. For nodes in different ones, the edge
  // connects their representatives in the innermost frame around both.
  void add_edge(NodeId from, NodeId to) {
    std::uint32_t of_from = frames_.of_outputs(from), of_to = frames_.of_node[to];
    if (frames_.frames[of_to].body == to) of_to = frames_.frames[of_to].parent;
    while (of_from != of_to)  // a frame has a higher number than the one around it
      if (of_from > of_to) {
        from = frames_.frames[of_from].next;
        of_from = frames_.frames[of_from].parent;
      } else {
        to = frames_.frames[of_to].body;
        of_to = frames_.frames[of_to].parent;
      }
    if (from >= to) return;  // in one loop, which orders its own iterations
    added_[to].push_back(from);
    successors_[from].push_back(to);
  }

  const GraphDef& graph_;
  const Frames& frames_;
  const OpRegistry& ops_;
  std::vector<std::vector<NodeId>> successors_;
  std::map<NodeId, std::vector<NodeId>> added_;
};

// A node that runs after old node `from`, even if that is dead.
NodeDef trigger_after(const Rewriter& out, NodeId from) {
  const NodeDef& write = out.graph().nodes[out.node(from)];
  NodeDef trigger;
  trigger.name = "_after/" + write.name;
  trigger.op = "ControlTrigger";
  trigger.control = {out.node(from)};
  trigger.colocate = {write.name};
  trigger.site = write.site;
  return trigger;
}

void add_control(StepGraph& step, const std::map<NodeId, std::vector<NodeId>>& added,
                 const OpRegistry& ops) {
  const std::vector<bool> dead = maybe_dead_past_merges(step.graph.nodes, ops);
  const std::size_t nodes = step.graph.nodes.size();
  Rewriter out(step);
  std::map<NodeId, NodeId> triggers;
  for (NodeId id = 0; id < nodes; ++id) {
    auto at = added.find(id);
    std::vector<NodeId> more;
    for (std::size_t i = 0; at != added.end() && i < at->second.size(); ++i) {
      const NodeId from = at->second[i];
      if (!dead[from]) {
        step.graph.nodes[id].control.push_back(from);
        continue;
      }
      auto [trigger, fresh] = triggers.try_emplace(from, kNoNode);
      if (fresh) trigger->second = out.append(trigger_after(out, from));
      more.push_back(trigger->second);
    }
    const NodeId made = out.keep(id);
    if (!more.empty()) out.add_control(made, more);
  }
  out.finish();
}

bool has_later_reads(const Uses& uses) {
  return !uses.writes.empty() && !uses.reads.empty() && uses.reads.back() > uses.writes.front();
}

void set_epoch(NodeDef& node, std::uint32_t epoch) {
  node.attrs.insert_or_assign(std::string(kEpochAttr), Attr(std::int64_t(epoch)));
}

// Numbers each write above all earlier ones of its variables: epochs grow along each chain. From
// here on a write has one contribution, until it is copied.
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
    // Only replication makes copies. Who reads it would wait for those that a client names.
    AttrMap& attrs = graph.nodes[write].attrs;
    if (auto at = attrs.find("replicas"); at != attrs.end()) at->second = Attr(std::int64_t{1});
  }
}

}  // namespace

Status order_writes(StepGraph& step, const Target& target) {
  GraphDef& graph = step.graph;
  TROUPE_TRY(auto all, find_uses(graph, *target.ops));
  const bool any = std::any_of(all.begin(), all.end(), [](const auto& entry) {
    return entry.second.writes.size() > 1 || has_later_reads(entry.second);
  });
  if (!any) {
    number_writes(graph, all);
    return ok_status();
  }
  TROUPE_TRY(const Frames frames, find_frames(graph, *target.ops));
  Descendants after(graph, frames, *target.ops);
  // All edges first: an edge for one variable adds ancestors for another.
  for (auto& [key, uses] : all)
    if (uses.writes.size() > 1) after.connect_writes(uses.writes, uses.writes.back());
  number_writes(graph, all);
  for (auto& [key, uses] : all) {
    if (!has_later_reads(uses)) continue;
    const auto found = after.connect_reads(uses.writes, uses.reads);
    for (NodeId read : uses.reads)
      if (auto at = found.find(read); at != found.end())
        set_epoch(graph.nodes[read], 1 + epoch_of(graph.nodes[uses.writes[at->second.seen - 1]]));
  }
  if (!after.added().empty()) add_control(step, after.added(), *target.ops);
  return ok_status();
}

}  // namespace troupe
