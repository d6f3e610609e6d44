#include "troupe/graph/make_plan.hpp"

#include <algorithm>
#include <map>

#include "troupe/core/hash.hpp"

namespace troupe {
namespace {

bool structural(Role role) {
  switch (role) {
    case Role::send:
    case Role::recv:
    case Role::switch_:
    case Role::merge:
    case Role::control_trigger:
      return true;
    default:
      return false;
  }
}

// Where the nodes of a step stand in the plans of their partitions.
struct Numbering {
  Numbering(const GraphDef& graph, const Partitions& partitions)
      : members(partitions.devices.size()),
        index(graph.nodes.size()),
        first_slot(graph.nodes.size()) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      if (partitions.of_node[id] == kNoNode) continue;  // a feed or a handle
      auto& list = members[partitions.of_node[id]];
      index[id] = std::uint32_t(list.size());
      list.push_back(id);
    }
  }
  std::vector<std::vector<NodeId>> members;  // by partition, in plan order
  std::vector<std::uint32_t> index;          // node -> plan index
  std::vector<std::uint32_t> first_slot;     // of nodes; a feed has one in each plan
};

// The graph of one partition on its way into flat arrays.
class Flattener {
 public:
  Flattener(const StepGraph& step, const Partitions& partitions, std::uint32_t home,
            const OpRegistry& ops, Numbering& numbering)
      : graph_(step.graph),
        step_(step),
        partitions_(partitions),
        home_(home),
        ops_(ops),
        members_(numbering.members[home]),
        index_(numbering.index),
        first_slot_(numbering.first_slot) {}

  // Everything but PlanInfo::def.
  Plan run() {
    const TargetDevice& device = partitions_.devices[home_];
    plan_.device = device.name.text();
    plan_.nodes.reserve(members_.size());
    plan_.info.reserve(members_.size());
    add_feeds();
    for (NodeId id : members_) add_outputs(id);
    successors_.resize(members_.size());
    for (NodeId id : members_) add_node(id);
    add_edges();
    add_fetches();
    finish();
    return std::move(plan_);
  }

 private:
  std::uint32_t slot_of(Port port) const {
    return is_feed(port.node) ? feed_slot_.at(port.node) : first_slot_[port.node] + port.index;
  }
  bool is_feed(NodeId id) const { return graph_.nodes[id].op == kFeedOp; }

  void add_feeds() {
    for (NodeId id : members_)
      for (Port in : graph_.nodes[id].inputs) {
        if (!is_feed(in.node)) continue;
        if (!feed_slot_.emplace(in.node, std::uint32_t(plan_.slots.size())).second) continue;
        plan_.feeds.push_back({std::uint32_t(plan_.slots.size()), feed_index(in.node)});
        plan_.slots.emplace_back();
      }
  }

  std::uint32_t feed_index(NodeId id) const {
    return std::uint32_t(*graph_.nodes[id].attrs.find("feed")->second.get<std::int64_t>());
  }

  void add_outputs(NodeId id) {
    const NodeDef& node = graph_.nodes[id];
    const OpInfo& op = op_of(node, ops_);
    first_slot_[id] = std::uint32_t(plan_.slots.size());
    for (std::size_t i = 0; i < node.out_types.size(); ++i)
      plan_.slots.push_back({0, output_space(op, node, i, partitions_.devices[home_].space)});
  }

  void add_node(NodeId id) {
    const NodeDef& def = graph_.nodes[id];
    const OpInfo& op = op_of(def, ops_);
    const std::uint32_t number = index_[id];
    PlanNode node;
    node.first_input = std::uint32_t(plan_.input_slots.size());
    node.first_slot = first_slot_[id];
    node.outputs = std::uint16_t(def.out_types.size());
    node.role = op.def.role;
    node.cheap = op.def.cheap || structural(op.def.role);
    PlanInfo info = describe(def, op);
    std::uint32_t pending = 0;
    for (std::size_t i = 0; i < def.inputs.size(); ++i) {
      const Port in = def.inputs[i];
      const DType dtype = graph_.nodes[in.node].out_types[in.index];
      if (dtype == DType::resource) {
        info.handles.push_back(resource_index(graph_.nodes[in.node]));
        continue;
      }
      const std::uint32_t slot = slot_of(in);
      plan_.input_slots.push_back(slot);
      ++plan_.slots[slot].readers;
      ++node.inputs;
      info.input_space.push_back(input_space(op, def, i, dtype, partitions_.devices[home_].space));
      if (is_feed(in.node)) continue;
      successors_[index_[in.node]].push_back({number, false});
      ++pending;
    }
    for (NodeId c : def.control) {
      successors_[index_[c]].push_back({number, true});
      ++pending;
    }
    if (!info.handles.empty())
      info.resource = info.handles.front();
    else if (info.external)
      info.resource = resource_of_device(def, info.external->resource);
    plan_.pending.push_back(pending);
    if (pending == 0) plan_.roots.push_back(number);
    plan_.writes = plan_.writes || (info.external && info.external->commits);
    plan_.nodes.push_back(node);
    plan_.info.push_back(std::move(info));
  }

  PlanInfo describe(const NodeDef& def, const OpInfo& op) const {
    PlanInfo info;
    info.name = def.name;
    info.replica = def.replica;
    info.random_key = hash_combine(hash_text(original_name(def), graph_.seed),
                                   std::uint64_t(std::max(def.replica, 0)));
    info.epoch = epoch_of(def);
    if (op.def.role == Role::external) info.external = &op.def.external;
    if (op.def.role == Role::send || op.def.role == Role::recv)
      info.channel = ChannelId(*def.attrs.find("channel")->second.get<std::int64_t>());
    return info;
  }

  std::uint32_t resource_index(const NodeDef& handle) {
    auto [at, added] =
        resources_.try_emplace(resource_key(handle, ops_), std::uint32_t(plan_.resources.size()));
    if (!added) return at->second;
    ResourceRef ref;
    ref.kind = op_of(handle, ops_).def.external.resource;
    auto container = handle.attrs.find("container");
    if (container != handle.attrs.end())
      if (const std::string* text = container->second.get<std::string>()) ref.container = *text;
    ref.name = resource_name(handle);
    ref.def = handle;
    plan_.resources.push_back(std::move(ref));
    return at->second;
  }

  std::uint32_t resource_of_device(const NodeDef& node, const std::string& kind) {
    auto [at, added] = of_device_.try_emplace(kind, std::uint32_t(plan_.resources.size()));
    if (added) plan_.resources.push_back({kind, {}, {}, node});
    return at->second;
  }

  void add_edges() {
    for (std::size_t i = 0; i < successors_.size(); ++i) {
      plan_.nodes[i].first_edge = std::uint32_t(plan_.edges.size());
      plan_.nodes[i].edges = std::uint32_t(successors_[i].size());
      plan_.edges.insert(plan_.edges.end(), successors_[i].begin(), successors_[i].end());
    }
  }

  void add_fetches() {
    for (std::uint32_t i = 0; i < step_.fetches.size(); ++i) {
      if (partitions_.of_node[step_.fetches[i].node] != home_) continue;
      const std::uint32_t slot = slot_of(step_.fetches[i]);
      plan_.slots[slot].fetched = true;
      plan_.fetches.push_back({slot, i});
    }
  }

  void finish() {
    PlanFrame root;
    root.nodes = std::uint32_t(plan_.nodes.size());
    root.slots = std::uint32_t(plan_.slots.size());
    plan_.frames.push_back(std::move(root));
  }

  const GraphDef& graph_;
  const StepGraph& step_;
  const Partitions& partitions_;
  const std::uint32_t home_;
  const OpRegistry& ops_;
  const std::vector<NodeId>& members_;
  const std::vector<std::uint32_t>& index_;
  std::vector<std::uint32_t>& first_slot_;
  std::map<NodeId, std::uint32_t> feed_slot_;
  Plan plan_;
  std::vector<std::vector<PlanEdge>> successors_;
  std::map<std::string, std::uint32_t> resources_;  // by key
  std::map<std::string, std::uint32_t> of_device_;  // by kind
};

bool allocates(const PlanInfo& info, Role role) {
  if (role == Role::external) return info.external->order == External::Order::none;
  return role == Role::copy || role == Role::recv ||
         (role == Role::kernel && info.def.op != "Const");
}

}  // namespace

std::vector<Plan> make_plans(StepGraph step, const Partitions& partitions, const OpRegistry& ops) {
  Numbering numbering(step.graph, partitions);
  std::vector<Plan> plans;
  for (std::uint32_t i = 0; i < partitions.devices.size(); ++i)
    plans.push_back(Flattener(step, partitions, i, ops, numbering).run());
  // Last, because a node's readers look at it, and may be on other devices.
  for (std::size_t p = 0; p < plans.size(); ++p)
    for (std::size_t i = 0; i < plans[p].info.size(); ++i)
      plans[p].info[i].def = std::move(step.graph.nodes[numbering.members[p][i]]);
  return plans;
}

std::uint64_t liveness_bound_bytes(const Plan& plan) {
  std::vector<std::uint64_t> bytes(plan.slots.size(), 0);
  std::vector<std::uint32_t> readers;
  for (const PlanSlot& slot : plan.slots) readers.push_back(slot.readers);
  std::uint64_t live = 0, peak = 0;
  auto drop = [&](std::uint32_t slot) {
    if (readers[slot] == 0 && !plan.slots[slot].fetched) live -= bytes[slot];
  };
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    const NodeDef& def = plan.info[i].def;
    for (std::uint32_t o = 0; o < node.outputs && allocates(plan.info[i], node.role); ++o) {
      if (!def.out_shapes[o].fully_known()) continue;
      bytes[node.first_slot + o] =
          std::uint64_t(def.out_shapes[o].shape().elements()) * dtype_size(def.out_types[o]);
      live += bytes[node.first_slot + o];
    }
    peak = std::max(peak, live);
    for (std::uint32_t k = 0; k < node.inputs; ++k) {
      const std::uint32_t slot = plan.input_slots[node.first_input + k];
      --readers[slot];
      drop(slot);
    }
    for (std::uint32_t o = 0; o < node.outputs; ++o) drop(node.first_slot + o);
  }
  return peak;
}

}  // namespace troupe
