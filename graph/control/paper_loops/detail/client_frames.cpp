#include "graph/control/paper_loops/detail/client_frames.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "graph/detail/back_edge.hpp"

namespace troupe::detail {
namespace {

std::string node_text(const NodeDef& node) {
  return quoted(node.name) + " (" + node.site.text() + ")";
}

constexpr std::size_t kDeepestLoops = 200;

class FrameFinder {
 public:
  FrameFinder(const std::vector<NodeDef>& nodes, const OpRegistry& ops) : nodes_(nodes), ops_(ops) {
    out_.frames.emplace_back();
  }

  Expected<ClientFrames> run() {
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      NodeId from = kNoNode;
      TROUPE_TRY(find_source(id, from));
      std::uint32_t f = from == kNoNode ? 0 : around(from);
      if (role(id) == Role::enter) f = from == kNoNode ? entered_anywhere(id) : entered(id, f);
      if (depth(f) > kDeepestLoops)
        return in_node(resource_exhausted("loops in loops, more than " +
                                          std::to_string(kDeepestLoops) + " deep"),
                       nodes_[id]);
      if (f == 0 && is_loop_role(role(id)))
        return in_node(invalid_argument("is in no loop: it comes from no Enter"), nodes_[id]);
      out_.of_node.push_back(f);
      out_.frames[f].nodes.push_back(id);
    }
    for (NodeId id = 0; id < nodes_.size(); ++id) TROUPE_TRY(check_back_edges(id));
    return std::move(out_);
  }

 private:
  Status check_back_edges(NodeId id) {
    for (Port in : nodes_[id].inputs)
      if (is_back_edge(nodes_[in.node], nodes_[id], ops_) &&
          out_.of_node[in.node] != out_.of_node[id])
        return in_node(invalid_argument("takes " + where(in.node) + ", and is not in that loop"),
                       nodes_[id]);
    return ok_status();
  }

  Role role(NodeId id) const { return role_of(nodes_[id], ops_); }
  // The frame of a node's outputs.
  std::uint32_t around(NodeId id) {
    const std::uint32_t f = out_.of_node[id];
    if (role(id) != Role::exit) return f;
    floating_.erase(f);
    return out_.frames[f].parent;
  }

  // Finds an input that determines the frame of the node; for an Enter, the frame around it.
  Status find_source(NodeId id, NodeId& first) {
    const NodeDef& node = nodes_[id];
    auto same = [&](NodeId from) {
      if (is_everywhere(nodes_[from], ops_)) return ok_status();
      if (first == kNoNode) first = from;
      if (around(first) == around(from)) return ok_status();
      return in_node(invalid_argument("takes " + where(first) + " and " + where(from) +
                                      "; what is the same in each iteration comes into a loop by "
                                      "an Enter with is_constant, and results leave it by a Leave"),
                     node);
    };
    for (Port in : node.inputs)
      if (!is_back_edge(nodes_[in.node], node, ops_)) TROUPE_TRY(same(in.node));
    for (NodeId c : node.control) TROUPE_TRY(same(c));
    return ok_status();
  }

  std::string where(NodeId id) {
    const std::uint32_t f = around(id);
    return node_text(nodes_[id]) +
           (f == 0 ? " outside of all loops" : " of the loop " + quoted(out_.frames[f].name));
  }

  const std::string& frame_name(NodeId enter) const {
    return *nodes_[enter].attrs.at("frame_name").get<std::string>();
  }

  std::uint32_t entered(NodeId enter, std::uint32_t parent) {
    const std::string& name = frame_name(enter);
    if (auto at = known_.find({parent, name}); at != known_.end()) return last_[name] = at->second;
    const auto last = last_.find(name);
    if (last != last_.end() && floating_.contains(last->second) &&
        !is_inside(parent, last->second)) {
      const std::uint32_t f = last->second;
      floating_.erase(f);
      known_.erase({0, name});
      out_.frames[f].parent = parent;
      known_.emplace(std::pair(parent, name), f);
      return f;
    }
    return added(name, parent);
  }

  // An Enter of a constant does not determine where its loop is; the other Enters of that name do.
  std::uint32_t entered_anywhere(NodeId enter) {
    const std::string& name = frame_name(enter);
    if (auto at = last_.find(name); at != last_.end()) return at->second;
    const std::uint32_t f = added(name, 0);
    floating_.insert(f);
    return f;
  }

  std::uint32_t added(const std::string& name, std::uint32_t parent) {
    const auto f = std::uint32_t(out_.frames.size());
    out_.frames.push_back({name, parent, {}});
    known_.emplace(std::pair(parent, name), f);
    return last_[name] = f;
  }

  std::size_t depth(std::uint32_t f) const {
    std::size_t out = 0;
    for (; f != 0 && out <= kDeepestLoops; f = out_.frames[f].parent) ++out;
    return out;
  }

  bool is_inside(std::uint32_t f, std::uint32_t outer) const {
    while (f != 0 && f != outer) f = out_.frames[f].parent;
    return f == outer;
  }

  const std::vector<NodeDef>& nodes_;
  const OpRegistry& ops_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> known_;
  std::map<std::string, std::uint32_t> last_;  // by name
  std::set<std::uint32_t> floating_;           // frames that only constants have entered
  ClientFrames out_;
};

}  // namespace

bool is_everywhere(const NodeDef& node, const OpRegistry& ops) {
  return is_handle(role_of(node, ops)) || (node.op == "Const" && node.control.empty());
}

Expected<ClientFrames> find_client_frames(const std::vector<NodeDef>& nodes,
                                          const OpRegistry& ops) {
  return FrameFinder(nodes, ops).run();
}

std::string nodes_text(const std::vector<NodeDef>& nodes, const std::vector<NodeId>& some) {
  constexpr std::size_t kMostShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(some.size(), kMostShown); ++i)
    text += (i == 0 ? "" : ", ") + node_text(nodes[some[i]]);
  return text + (some.size() > kMostShown ? ", ..." : "");
}

Expected<std::vector<NodeId>> in_order(const std::vector<NodeDef>& nodes, std::vector<NodeId> some,
                                       const OpRegistry& ops) {
  std::unordered_map<NodeId, std::uint32_t> pending;
  std::unordered_map<NodeId, std::vector<NodeId>> readers;
  for (NodeId id : some) pending.emplace(id, 0);
  auto count = [&](NodeId from, NodeId to) {
    if (!pending.contains(from)) return;
    ++pending[to];
    readers[from].push_back(to);
  };
  for (NodeId id : some) {
    for (Port in : nodes[id].inputs)
      if (!is_back_edge(nodes[in.node], nodes[id], ops)) count(in.node, id);
    for (NodeId c : nodes[id].control) count(c, id);
  }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId id : some)
    if (pending[id] == 0) ready.push(id);
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    pending.erase(id);
    for (NodeId to : readers[id])
      if (--pending[to] == 0) ready.push(to);
  }
  if (order.size() == some.size()) return order;
  std::erase_if(some, [&](NodeId id) { return !pending.contains(id); });
  return in_node(
      invalid_argument("a loop takes what is made of its own results: " + nodes_text(nodes, some)),
      nodes[some.front()]);
}

}  // namespace troupe::detail
