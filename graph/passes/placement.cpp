#include "graph/passes/placement.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "graph/detail/device_over.hpp"
#include "graph/detail/disjoint_sets.hpp"
#include "graph/passes/picked_rows.hpp"

namespace troupe {
namespace {

std::string list_of(const std::vector<TargetDevice>& devices) {
  std::string out;
  for (const TargetDevice& d : devices) out += (out.empty() ? "" : ", ") + d.name.text();
  return out;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out.empty() ? "none" : out;
}

DType type_of(const NodeDef& node) {
  auto at = node.attrs.find("T");
  const DType* type = at == node.attrs.end() ? nullptr : at->second.get<DType>();
  return type ? *type : DType::invalid;
}

// A union-find component: nodes that go to one device.
struct Group {
  DeviceName constraint;
  const DeviceName* fixed = nullptr;  // the device of its state, from an earlier compile
  NodeId constrained_by = kNoNode;    // the node that gave the constraint, for messages
  NodeId fixed_by = kNoNode;          // a handle of that state
  std::vector<NodeId> members;
  bool holds_resource = false;
};

class Placer {
 public:
  Placer(StepGraph& step, const Target& target)
      : step_(step),
        graph_(step.graph),
        target_(target),
        ops_(*target.ops),
        devices_(by_preference(target.devices, target.kernels)),
        sets_(graph_.nodes.size()) {}

  Status run() {
    join_groups();
    TROUPE_TRY(constrain());
    assigned_.assign(graph_.nodes.size(), nullptr);
    // Generators and metadata ops follow others, so they come last.
    std::vector<Group*> followers;
    for (Group& group : groups_) {
      TROUPE_TRY(auto feasible, feasible_devices(group));
      if (leader_of(group) != kNoNode) followers.push_back(&group);
      assign(group, feasible.front());
    }
    for (Group* group : followers) TROUPE_TRY(follow(*group));
    for (const auto& [wanted, nodes] : elsewhere_) note_elsewhere(nodes);
    std::vector<std::string> names;
    for (const TargetDevice& d : devices_) names.push_back(d.name.text());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      if (!is_feed(id))
        graph_.nodes[id].device = names[std::size_t(assigned_[id] - devices_.data())];
    const std::vector<bool> free = unconstrained();
    keep_on_host(step_, free, target_);
    spread_constants(step_, free, target_);
    keep_constants_on_host(step_, target_);
    return ok_status();
  }

 private:
  bool is_feed(NodeId id) const { return graph_.nodes[id].op == kFeedOp; }
  Role role(NodeId id) const { return role_of(graph_.nodes[id], ops_); }
  // Whether it is a handle of what is in one place. Replicas read a dataset wherever they are.
  bool has_home(NodeId id) const {
    const NodeDef& node = graph_.nodes[id];
    return is_handle(role(id)) && !is_replicas_dataset(node, ops_);
  }

  // The smaller id stands for a set, so that groups come in the order of their first nodes.
  NodeId find(NodeId id) { return sets_.find(id); }
  void join(NodeId a, NodeId b) { sets_.join(a, b); }

  void join_groups() {
    std::unordered_map<std::string_view, NodeId> by_name, by_group;
    std::unordered_map<std::string, NodeId> by_resource;
    by_name.reserve(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      if (!is_feed(id)) by_name.emplace(graph_.nodes[id].name, id);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const NodeDef& node = graph_.nodes[id];
      if (is_feed(id)) continue;
      if (has_home(id))
        join(id, by_resource.try_emplace(resource_key(node, ops_), id).first->second);
      for (std::size_t i = 0; i < handle_inputs(graph_, node); ++i) join(id, node.inputs[i].node);
      for (const std::string& other : node.colocate) {
        // Nodes with a common name stay together even if its node was pruned or is fed.
        if (auto at = by_name.find(other); at != by_name.end()) join(id, at->second);
        join(id, by_group.try_emplace(other, id).first->second);
      }
    }
    join_lists();
    make_groups();
  }

  // Joins the readers of a list with the node that makes it, unless their groups name different
  // devices: then the list is sent.
  void join_lists() {
    std::vector<std::pair<NodeId, NodeId>> edges;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      for (Port in : graph_.nodes[id].inputs)
        if (const NodeId from = takes_along(graph_.nodes[id], in); from != kNoNode)
          edges.emplace_back(id, from);
    if (edges.empty()) return;
    std::unordered_map<NodeId, DeviceName> wanted;  // by root
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (is_feed(id)) continue;
      auto constraint = constraint_of(id);
      if (!constraint.ok()) continue;  // constrain() reports the error
      if (has_home(id))
        if (auto at = target_.fixed.find(resource_key(graph_.nodes[id], ops_));
            at != target_.fixed.end())
          constraint = at->second;
      if (constraint->empty()) continue;
      DeviceName& all = wanted[find(id)];
      if (auto both = DeviceName::merge(all, *constraint); both.ok()) all = *both;
    }
    for (auto [id, from] : edges) {
      const NodeId a = find(id), b = find(from);
      if (a == b) continue;
      auto both = DeviceName::merge(wanted[a], wanted[b]);
      const bool there =
          both.ok() && std::any_of(devices_.begin(), devices_.end(),
                                   [&](const auto& d) { return both->matches(d.name); });
      if (!there) continue;
      join(a, b);
      wanted[find(a)] = std::move(both).value();
    }
  }

  // The node that makes the list `in`, unless both it and `node` name a device, and these differ.
  // Loops, which may be on several devices, only pass lists on.
  NodeId takes_along(const NodeDef& node, Port in) const {
    const auto hands_on = [](const NodeDef& n) {
      return n.op == kLoopBodyOp || n.op == kLoopNextOp;
    };
    if (graph_.nodes[in.node].out_types[in.index] != DType::list || hands_on(node)) return kNoNode;
    while (hands_on(graph_.nodes[in.node])) in = graph_.nodes[in.node].inputs[in.index + 1];
    const std::string& device = graph_.nodes[in.node].device;
    const bool along = node.device.empty() || device.empty() || node.device == device;
    return along ? in.node : kNoNode;
  }

  void make_groups() {
    std::vector<std::uint32_t> group_of(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (is_feed(id)) continue;
      const NodeId root = find(id);  // comes before the others of its group
      if (root == id) {
        group_of[id] = std::uint32_t(groups_.size());
        groups_.emplace_back();
      }
      groups_[group_of[root]].members.push_back(id);
    }
  }

  // Merges the constraints of a group's members, and applies decisions of an earlier compile.
  // Handles come first: the other members go where the resources are.
  Status constrain() {
    for (Group& group : groups_) {
      for (NodeId id : group.members) {
        if (!is_handle(role(id))) continue;
        group.holds_resource = true;
        if (has_home(id)) TROUPE_TRY(fix(group, id));
        TROUPE_TRY(constrain(group, id));
      }
      const DeviceName of_handles = group.constraint;
      for (NodeId id : group.members)
        if (!is_handle(role(id))) TROUPE_TRY(constrain(group, id));
      if (group.fixed != nullptr) TROUPE_TRY(stay(group, of_handles));
    }
    return ok_status();
  }

  Status constrain(Group& group, NodeId id) {
    TROUPE_TRY(DeviceName wanted, constraint_of(id));
    return wanted.empty() ? ok_status() : merge(group, id, wanted);
  }

  // Applies what an earlier compile decided about the state behind handle `id`.
  Status fix(Group& group, NodeId id) {
    const NodeDef& node = graph_.nodes[id];
    auto at = target_.fixed.find(resource_key(node, ops_));
    if (at == target_.fixed.end()) return ok_status();
    auto device = std::find_if(devices_.begin(), devices_.end(),
                               [&](const TargetDevice& d) { return d.name == at->second; });
    if (device == devices_.end())
      return in_node(failed_precondition("its state is on " + at->second.text() +
                                         ", which is not among the devices " + list_of(devices_)),
                     node);
    if (group.fixed != nullptr && *group.fixed != device->name)
      return in_node(failed_precondition(
                         "must share a device with '" + graph_.nodes[group.fixed_by].name + "' (" +
                         graph_.nodes[group.fixed_by].site.text() + "), but its state is on " +
                         device->name.text() + " and that one's on " + group.fixed->text()),
                     node);
    group.fixed = &device->name;
    group.fixed_by = id;
    return ok_status();
  }

  // State does not move. A constraint that excludes its device is an error, unless the handles' own
  // constraint was relaxed when the state was placed, or no device meets it.
  Status stay(Group& group, const DeviceName& of_handles) {
    const bool relaxed = target_.soft_placement && !of_handles.matches(*group.fixed);
    DeviceName task = group.constraint;
    task.type.reset(), task.index.reset();
    const bool nowhere = target_.soft_placement && task.matches(*group.fixed) &&
                         matching(group.constraint, group).empty();
    const bool adds = !(group.constraint == of_handles);
    if (!group.constraint.matches(*group.fixed) && !nowhere && (adds || !relaxed)) {
      const NodeDef& handle = graph_.nodes[group.fixed_by];
      for (NodeId id : group.members) {
        TROUPE_TRY(const DeviceName wanted, constraint_of(id));
        if (wanted.matches(*group.fixed)) continue;
        const std::string asked = "asks for '" + wanted.text() + "', but ";
        const std::string state =
            "state is on " + group.fixed->text() + " since an earlier request";
        return in_node(failed_precondition(id == group.fixed_by
                                               ? asked + "its " + state
                                               : asked + "must be where '" + handle.name + "' (" +
                                                     handle.site.text() + ") is, whose " + state),
                       graph_.nodes[id]);
      }
    }
    group.constraint = *group.fixed;
    return ok_status();
  }

  Expected<DeviceName> constraint_of(NodeId id) const {
    const NodeDef& node = graph_.nodes[id];
    if (node.device.empty()) return DeviceName();
    auto parsed = DeviceName::parse(node.device);
    if (!parsed.ok()) return in_node(parsed.status(), node);
    for (const TargetDevice& d : devices_)
      if (parsed->matches(d.name)) return parsed;
    if (target_.soft_placement) {
      DeviceName task = *parsed;
      task.type.reset(), task.index.reset();
      for (const TargetDevice& d : devices_)
        if (task.matches(d.name)) return parsed;  // relaxed with the group's
    }
    return in_node(
        invalid_argument("device '" + node.device + "' matches none of " + list_of(devices_)),
        node);
  }

  Status merge(Group& group, NodeId id, const DeviceName& wanted) {
    if (group.constrained_by == kNoNode) {
      group.constraint = wanted;
      group.constrained_by = id;
      return ok_status();
    }
    const NodeDef& node = graph_.nodes[id];
    const NodeDef& other = graph_.nodes[group.constrained_by];
    // A node with a handle must be where its resource is.
    const bool soft = target_.soft_placement && !group.holds_resource;
    auto merged = DeviceName::merge(group.constraint, wanted, soft);
    if (!merged.ok())
      return in_node(
          invalid_argument("must share a device with '" + other.name + "' (" + other.site.text() +
                           "), but asks for '" + wanted.text() + "' where that one asks for '" +
                           group.constraint.text() + "'"),
          node);
    if (soft && !DeviceName::merge(group.constraint, wanted).ok())
      step_.notes.push_back("place: '" + node.name + "' asks for " + wanted.text() + " and '" +
                            other.name + "', which must be with it, for " +
                            group.constraint.text() + ": only " +
                            (merged->empty() ? "neither" : merged->text()) + " holds");
    group.constraint = *merged;
    return ok_status();
  }

  bool supports(const TargetDevice& device, NodeId id) const {
    return has_kernel(device, graph_.nodes[id], target_);
  }
  bool supports_all(const TargetDevice& device, const Group& group) const {
    return std::all_of(group.members.begin(), group.members.end(),
                       [&](NodeId id) { return supports(device, id); });
  }

  std::vector<const TargetDevice*> matching(const DeviceName& constraint,
                                            const Group& group) const {
    std::vector<const TargetDevice*> out;
    for (const TargetDevice& d : devices_)
      if (constraint.matches(d.name) && supports_all(d, group)) out.push_back(&d);
    return out;
  }

  Expected<std::vector<const TargetDevice*>> feasible_devices(Group& group) {
    auto found = matching(group.constraint, group);
    if (!found.empty()) return found;
    if (target_.soft_placement) {
      DeviceName task = group.constraint;
      task.type.reset(), task.index.reset();
      found = matching(task, group);
      if (!found.empty()) {
        const NodeId by =
            group.constrained_by == kNoNode ? group.members.front() : group.constrained_by;
        step_.notes.push_back("place: '" + graph_.nodes[group.members.front()].name +
                              "' cannot be on " +
                              detail::device_text(group.constraint, graph_.nodes[by].device) +
                              "; placed on " + found.front()->name.text());
        auto [at, first] = elsewhere_.try_emplace(group.constraint.text());
        if (first) at->second = {group.constraint, by, found.front(), 0};
        at->second.nodes += group.members.size();
        return found;
      }
    }
    return explain(group);
  }

  // Nodes that are not on the device that one constraint requests.
  struct Elsewhere {
    DeviceName wanted;
    NodeId first = kNoNode;
    const TargetDevice* on = nullptr;  // device of the first
    std::size_t nodes = 0;
  };
  void note_elsewhere(const Elsewhere& them) {
    const NodeDef& node = graph_.nodes[them.first];
    const bool there = std::any_of(devices_.begin(), devices_.end(),
                                   [&](const auto& d) { return them.wanted.matches(d.name); });
    const std::string more =
        them.nodes > 1 ? " and " + std::to_string(them.nodes - 1) + " more nodes" : "";
    step_.notes.push_back(
        std::string(kPlacedElsewhere) + detail::device_text(them.wanted, node.device) +
        (there ? ", where some nodes cannot be" : ", which this job does not have") +
        ", is asked for by '" + node.name + "' (" + node.site.text() + ")" + more + ": placed on " +
        them.on->name.text() + " instead");
  }

  Status explain(const Group& group) const {
    const bool any = std::any_of(devices_.begin(), devices_.end(),
                                 [&](const auto& d) { return group.constraint.matches(d.name); });
    const NodeId by =
        group.constrained_by == kNoNode ? group.members.front() : group.constrained_by;
    if (!any)
      return in_node(
          invalid_argument("device '" +
                           detail::device_text(group.constraint, graph_.nodes[by].device) +
                           "' matches none of " + list_of(devices_)),
          graph_.nodes[by]);
    for (NodeId id : group.members) {
      const NodeDef& node = graph_.nodes[id];
      const bool somewhere = std::any_of(devices_.begin(), devices_.end(), [&](const auto& d) {
        return group.constraint.matches(d.name) && supports(d, id);
      });
      if (somewhere) continue;
      return in_node(no_kernel(id, group.constraint), node);
    }
    std::string table;
    std::set<std::string> listed;
    for (NodeId id : group.members) {
      const NodeDef& node = graph_.nodes[id];
      if (role(id) != Role::kernel || !listed.insert(node.op).second) continue;
      table += (table.empty() ? "" : "; ") + node.op + ": " +
               list_of(target_.kernels->devices_of(node.op));
    }
    return in_node(invalid_argument("nodes that must share a device have kernels on no common "
                                    "one: " +
                                    table),
                   graph_.nodes[by]);
  }

  Status no_kernel(NodeId id, const DeviceName& constraint) const {
    const NodeDef& node = graph_.nodes[id];
    if (op_of(node, ops_).def.external.on_host)
      return invalid_argument("op '" + node.op + "' runs on a device in host memory only");
    const auto types = target_.kernels->devices_of(node.op);
    if (types.empty()) return invalid_argument("no kernel is registered for op '" + node.op + "'");
    const DType type = type_of(node);
    return invalid_argument(
        "op '" + node.op + "'" +
        (type == DType::invalid ? "" : " of " + std::string(dtype_name(type))) +
        " has no kernel on " +
        (constraint.empty() ? "the devices " + list_of(devices_) : constraint.text()) +
        "; kernels of the op are for: " + list_of(types));
  }

  void assign(const Group& group, const TargetDevice* device) {
    for (NodeId id : group.members) assigned_[id] = device;
  }

  // The node whose device a single unconstrained node should share: for a metadata op its input,
  // for a node that picks rows of a variable the read, for a generator its only consumer.
  NodeId leader_of(const Group& group) {
    if (group.members.size() != 1 || group.constrained_by != kNoNode) return kNoNode;
    const NodeId id = group.members.front();
    const NodeDef& node = graph_.nodes[id];
    if (role(id) != Role::kernel) return kNoNode;
    if (node.op == "Shape" || node.op == "Rank" || node.op == "Size")
      return !node.inputs.empty() && !is_feed(node.inputs[0].node) ? node.inputs[0].node : kNoNode;
    if (const NodeId read = picks_rows_of(graph_, node, ops_); read != kNoNode) return read;
    if (!node.inputs.empty() || node.out_types.size() != 1) return kNoNode;
    if (consumers_.empty()) count_consumers();
    return consumers_[id].size() == 1 ? *consumers_[id].begin() : kNoNode;
  }

  std::vector<bool> unconstrained() const {
    std::vector<bool> out(graph_.nodes.size(), false);
    for (const Group& group : groups_)
      out[group.members.front()] = group.members.size() == 1 && group.constrained_by == kNoNode;
    return out;
  }

  void count_consumers() {
    consumers_.resize(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      for (Port in : graph_.nodes[id].inputs)
        if (consumers_[in.node].size() < 2) consumers_[in.node].insert(id);
  }

  Status follow(Group& group) {
    const TargetDevice* wanted = assigned_[leader_of(group)];
    TROUPE_TRY(auto feasible, feasible_devices(group));
    if (std::find(feasible.begin(), feasible.end(), wanted) != feasible.end())
      assign(group, wanted);
    return ok_status();
  }

  StepGraph& step_;
  GraphDef& graph_;
  const Target& target_;
  const OpRegistry& ops_;
  const std::vector<TargetDevice> devices_;
  detail::DisjointSets sets_;
  std::vector<Group> groups_;  // in the order of their first nodes
  std::vector<const TargetDevice*> assigned_;
  std::vector<std::set<NodeId>> consumers_;
  std::map<std::string, Elsewhere> elsewhere_;
};

}  // namespace

std::vector<TargetDevice> by_preference(std::vector<TargetDevice> devices,
                                        const KernelIndex* kernels) {
  auto rank = [&](const TargetDevice& d) { return kernels ? kernels->rank(*d.name.type) : 0; };
  std::stable_sort(devices.begin(), devices.end(), [&](const auto& a, const auto& b) {
    const int left = rank(a), right = rank(b);
    return left != right ? left < right : a.name < b.name;
  });
  return devices;
}

bool has_kernel(const TargetDevice& device, const NodeDef& node, const Target& target) {
  const OpDef& op = op_of(node, *target.ops).def;
  if (op.external.on_host) return device.space == MemorySpace::host;
  if (target.kernels == nullptr) return true;
  // Applying a write of a variable needs a kernel, too.
  const bool applied =
      op.external.order == External::Order::write && !target.kernels->devices_of(node.op).empty();
  if (op.role != Role::kernel && !applied) return true;
  return target.kernels->has(node.op, *device.name.type, type_of(node));
}

Status place(StepGraph& step, const Target& target) { return Placer(step, target).run(); }

}  // namespace troupe
