#include "graph/control/lowering/deadness.hpp"

#include <map>
#include <tuple>

namespace troupe {
namespace {

// The sides of Switches that nodes are on, as a tree: a side is inside of the one that its Switch
// is on. Switches of one predicate with as many outputs have the same sides. Of a node that is on
// several, which are not inside each other, one is known.
class SideTree {
 public:
  static constexpr std::uint32_t kOutside = 0;  // of all Switches
  // Deeper sides count as the one around them: it takes no longer to walk up from them.
  static constexpr std::uint32_t kDeepest = 200;

  explicit SideTree(std::size_t nodes) : of_(nodes, kOutside) {}

  std::uint32_t of(NodeId id) const { return of_[id]; }
  // That of output `p` of a Switch.
  std::uint32_t side(Port p, const NodeDef& node) {
    const std::uint32_t around = of_[p.node];
    if (all_[around].depth == kDeepest) return around;
    const Port predicate = node.inputs.size() > 1 ? node.inputs[1] : Port{p.node, 0};
    const auto [at, fresh] = known_.try_emplace(
        std::tuple(around, predicate, node.out_types.size(), p.index), std::uint32_t(all_.size()));
    if (fresh) all_.push_back({around, all_[around].depth + 1});
    return at->second;
  }
  void set(NodeId id, std::uint32_t side) { of_[id] = side; }

  std::uint32_t inner(std::uint32_t a, std::uint32_t b) const {
    return all_[a].depth < all_[b].depth ? b : a;
  }
  // What both are inside of.
  std::uint32_t common(std::uint32_t a, std::uint32_t b) const {
    while (a != b) {
      std::uint32_t& deeper = all_[a].depth < all_[b].depth ? b : a;
      deeper = all_[deeper].around;
    }
    return a;
  }

 private:
  struct Side {
    std::uint32_t around = kOutside, depth = 0;
  };
  std::vector<Side> all_{Side{}};
  std::map<std::tuple<std::uint32_t, Port, std::size_t, std::uint32_t>, std::uint32_t> known_;
  std::vector<std::uint32_t> of_;
};

std::vector<bool> find(const std::vector<NodeDef>& nodes, const OpRegistry& ops,
                       bool through_merges) {
  std::vector<bool> dead(nodes.size(), false), is_switch(nodes.size(), false);
  SideTree sides(nodes.size());
  // A Switch may part what a Merge has joined, by the Merge's index, as gradients of a Merge do.
  const auto joined = [&](Port p) {
    const NodeDef& node = nodes[p.node];
    const Port index = node.inputs.size() > 1 ? node.inputs[1] : Port{};
    if (index.index != 1 || index.node >= p.node || role_of(nodes[index.node], ops) != Role::merge)
      return Port{};
    const std::vector<Port>& all = nodes[index.node].inputs;
    return p.index < all.size() && all[p.index].node < index.node ? all[p.index] : Port{};
  };
  std::map<Port, std::uint32_t> sides_of_switches;
  const auto side_of = [&](Port in) {
    if (!is_switch[in.node]) return sides.of(in.node);
    const auto [at, fresh] = sides_of_switches.try_emplace(in, std::uint32_t{SideTree::kOutside});
    if (!fresh) return at->second;
    const Port part = joined(in);  // an input of a Merge before, so that its side is known
    std::uint32_t side = SideTree::kOutside;
    if (part.node != kNoNode)
      side = is_switch[part.node] ? sides_of_switches.at(part) : sides.of(part.node);
    at->second = side == SideTree::kOutside ? sides.side(in, nodes[in.node])
                                            : sides.inner(sides.of(in.node), side);
    return at->second;
  };
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const NodeDef& node = nodes[id];
    const Role role = role_of(node, ops);
    is_switch[id] = role == Role::switch_ || role == Role::kept;
    if (role == Role::control_trigger) continue;
    const bool merges = role == Role::merge && !through_merges;
    std::uint32_t side = SideTree::kOutside;
    bool any = false, first = true;
    for (Port in : node.inputs) {
      if (in.node < id) {
        any = any || dead[in.node] || is_switch[in.node];
        const std::uint32_t other = side_of(in);
        side = merges && !first ? sides.common(side, other) : sides.inner(side, other);
        first = false;
      }
      if (role == Role::keep) break;  // what it pushes may be dead
    }
    for (NodeId c : node.control) {
      if (merges) break;  // it waits for them, dead or not
      any = any || dead[c];
      side = sides.inner(side, sides.of(c));
    }
    // What a Merge joins may be dead altogether if all of it is on one side.
    if (merges) any = side != SideTree::kOutside || node.attrs.contains(kConditionalAttr);
    sides.set(id, side);
    dead[id] = any;
  }
  return dead;
}

}  // namespace

std::vector<bool> maybe_dead_nodes(const std::vector<NodeDef>& nodes, const OpRegistry& ops) {
  return find(nodes, ops, false);
}
std::vector<bool> nodes_with_dead_outputs(const std::vector<NodeDef>& nodes,
                                          const OpRegistry& ops) {
  std::vector<bool> dying = find(nodes, ops, false);
  for (NodeId id = 0; id < nodes.size(); ++id)
    dying[id] = dying[id] || role_of(nodes[id], ops) == Role::switch_;
  return dying;
}
std::vector<bool> maybe_dead_past_merges(const std::vector<NodeDef>& nodes, const OpRegistry& ops) {
  return find(nodes, ops, true);
}

}  // namespace troupe
