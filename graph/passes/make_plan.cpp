#include "graph/passes/make_plan.hpp"

#include <algorithm>
#include <map>

#include "core/hash.hpp"

namespace troupe {
namespace {

bool structural(Role role) {
  switch (role) {
    case Role::send:
    case Role::recv:
    case Role::switch_:
    case Role::merge:
    case Role::control_trigger:
    case Role::keep:
    case Role::kept:
    case Role::loop_cond:
    case Role::loop_next:
      return true;
    default:
      return false;
  }
}

// Whether the partition only serves others, as that of the variables of a step that computes
// elsewhere: it has tensors to send or receive, and no node needs a lane by itself.
bool serves(const Plan& plan) {
  bool channels = false;
  for (const PlanNode& node : plan.nodes) {
    if (!node.cheap && node.role != Role::external) return false;
    channels = channels || node.role == Role::send || node.role == Role::recv;
  }
  return channels;
}

// Whether an elementwise op has so few elements that computing them takes less than handing the
// node to a lane. The cost of strings is not known in advance.
bool is_small(const GraphDef& graph, const NodeDef& node) {
  constexpr std::int64_t kFewElements = 16;
  for (std::size_t k = 0; k < node.out_types.size(); ++k)
    if (node.out_types[k] == DType::string || !node.out_shapes[k].fully_known() ||
        node.out_shapes[k].shape().elements() > kFewElements)
      return false;
  return std::none_of(node.inputs.begin(), node.inputs.end(), [&](const Port& from) {
    return graph.nodes[from.node].out_types[from.index] == DType::string;
  });
}

std::int64_t int_attr(const NodeDef& node, std::string_view name, std::int64_t otherwise) {
  const auto at = node.attrs.find(name);
  return at == node.attrs.end() ? otherwise : *at->second.get<std::int64_t>();
}

// The client's name for a loop: its _LoopBody is NAME/begin.
std::string loop_name(const NodeDef& body) {
  return original_name(body).substr(0, original_name(body).rfind('/'));
}

// Whether the frame is a function that only functions of its region call: the plan has no call of
// it among the nodes around it.
bool is_called_inside(const Frames& frames, std::uint32_t f) {
  return frames.frames[f].is_function() && frames.frames[f].function != 0;
}

// A node of a plan. A _LoopBody or _FunctionBody makes two: the loop or the call, and the node that
// begins an iteration or each call.
struct Member {
  NodeId id = kNoNode;
  bool loop = false;
};

// The positions of a step's nodes in the plans of their partitions: in step order, except that a
// loop is followed by its frame.
struct Numbering {
  Numbering(const GraphDef& graph, const Partitions& partitions, const Frames& all)
      : frames(all),
        members(partitions.devices.size()),
        index(graph.nodes.size()),
        loop_index(all.frames.size()),
        first_slot(graph.nodes.size()),
        by_frame_(all.frames.size()),
        begun_by_(graph.nodes.size(), 0) {
    for (std::uint32_t f = 1; f < frames.frames.size(); ++f) begun_by_[frames.frames[f].body] = f;
    for (std::uint32_t p = 0; p < members.size(); ++p) {
      for (auto& list : by_frame_) list.clear();
      for (NodeId id = 0; id < graph.nodes.size(); ++id) {
        if (partitions.of_node[id] != p) continue;  // elsewhere, a feed or a handle
        if (const std::uint32_t f = begun_by_[id])
          by_frame_[frames.frames[f].parent].push_back({id, true});
        by_frame_[frames.of_node[id]].push_back({id, false});
      }
      emit(0, members[p]);
    }
  }

  // The node of the plan that has the outputs of a node; for a _LoopNext it is the loop.
  std::uint32_t source(NodeId id) const {
    const std::uint32_t f = frames.of_node[id];
    return f != 0 && frames.frames[f].next == id ? loop_index[f] : index[id];
  }

  const Frames& frames;
  std::vector<std::vector<Member>> members;  // by partition, in plan order
  std::vector<std::uint32_t> index;          // node -> plan index
  std::vector<std::uint32_t> loop_index;     // frame -> plan index of its loop
  std::vector<std::uint32_t> first_slot;     // of nodes; a feed has one in each plan

 private:
  void emit(std::uint32_t f, std::vector<Member>& out) {
    for (const Member& m : by_frame_[f]) {
      if (!m.loop || !is_called_inside(frames, begun_by_[m.id])) {
        (m.loop ? loop_index[begun_by_[m.id]] : index[m.id]) = std::uint32_t(out.size());
        out.push_back(m);
      }
      if (m.loop) emit(begun_by_[m.id], out);
    }
  }
  std::vector<std::vector<Member>> by_frame_;  // of one partition
  std::vector<std::uint32_t> begun_by_;        // node -> the frame that it begins, or 0
};

// Flattens the graph of one partition into arrays.
class Flattener {
 public:
  Flattener(const StepGraph& step, const Partitions& partitions, std::uint32_t home,
            const OpRegistry& ops, Numbering& numbering)
      : graph_(step.graph),
        step_(step),
        partitions_(partitions),
        home_(home),
        ops_(ops),
        numbering_(numbering),
        frames_(numbering.frames),
        members_(numbering.members[home]),
        first_slot_(numbering.first_slot) {}

  // Makes everything but PlanInfo::def.
  Plan run() {
    const TargetDevice& device = partitions_.devices[home_];
    plan_.device = device.name.text();
    plan_.nodes.reserve(members_.size());
    plan_.info.reserve(members_.size());
    add_feeds();
    add_slots();
    successors_.resize(members_.size());
    for (const Member& m : members_) add_node(m);
    // A request takes a microsecond, but others keep the lane, where updates are applied: else a
    // client that only writes would be ahead of its updates.
    if (serves(plan_))
      for (PlanNode& node : plan_.nodes) node.cheap = true;
    add_edges();
    add_fetches();
    return std::move(plan_);
  }

 private:
  std::uint32_t slot_of(Port port) const {
    return is_feed(port.node) ? feed_slot_.at(port.node) : first_slot_[port.node] + port.index;
  }
  bool is_feed(NodeId id) const { return graph_.nodes[id].op == kFeedOp; }

  void add_feeds() {
    for (const Member& m : members_)
      for (Port in : graph_.nodes[m.id].inputs) {
        if (!is_feed(in.node)) continue;
        if (!feed_slot_.emplace(in.node, std::uint32_t(plan_.slots.size())).second) continue;
        plan_.feeds.push_back({std::uint32_t(plan_.slots.size()), feed_index(in.node)});
        plan_.slots.emplace_back();
      }
  }

  std::uint32_t feed_index(NodeId id) const {
    return std::uint32_t(*graph_.nodes[id].attrs.find("feed")->second.get<std::int64_t>());
  }

  std::uint32_t frame_of(const Member& m) const {
    const std::uint32_t f = frames_.of_node[m.id];
    return m.loop ? frames_.frames[f].parent : f;
  }
  bool begins(const Member& m) const {
    return !m.loop && frames_.of_node[m.id] != 0 &&
           frames_.frames[frames_.of_node[m.id]].body == m.id;
  }
  bool ends(const Member& m) const {
    return frames_.of_node[m.id] != 0 && frames_.frames[frames_.of_node[m.id]].next == m.id;
  }

  // The slots of all members, and the ranges of frames.
  void add_slots() {
    plan_.frames.resize(1);
    plan_frame_.assign(frames_.frames.size(), 0);
    std::vector<std::uint32_t> before;  // by member: slots before it
    for (const Member& m : members_) {
      before.push_back(std::uint32_t(plan_.slots.size()));
      if (begins(m)) begin_frame(m);
      if (m.loop)
        add_outputs(frames_.frames[frames_.of_node[m.id]].next);
      else if (!ends(m))
        add_outputs(m.id);
      for (std::uint32_t f = frame_of(m); f != 0; f = frames_.frames[f].parent)
        ++plan_.frames[plan_frame_[f]].nodes;
    }
    before.push_back(std::uint32_t(plan_.slots.size()));
    plan_.frames[0].nodes = std::uint32_t(members_.size());
    for (PlanFrame& frame : plan_.frames)
      frame.slots = before[frame.first_node + frame.nodes] - frame.first_slot;
  }

  void begin_frame(const Member& m) {
    const std::uint32_t f = frames_.of_node[m.id];
    const Frames::Frame& from = frames_.frames[f];
    PlanFrame frame;
    frame.name = loop_name(graph_.nodes[m.id]);
    frame.parent = plan_frame_[from.parent];
    frame.loop = numbering_.loop_index[from.is_function() ? from.leader : f];
    frame.body = frame.first_node = numbering_.index[from.body];
    frame.next = numbering_.index[from.next];
    frame.first_slot = std::uint32_t(plan_.slots.size());
    frame.variables = std::uint32_t(graph_.nodes[from.next].out_types.size());
    frame.window = std::uint32_t(int_attr(graph_.nodes[from.body], kWindowAttr, 1));
    plan_frame_[f] = std::uint32_t(plan_.frames.size());
    if (from.is_function()) {
      frame.name = *graph_.nodes[m.id].attrs.at("name").get<std::string>();
      frame.leader = plan_frame_[from.leader];
      frame.variables = std::uint32_t(graph_.nodes[from.next].inputs.size());
    }
    plan_.frames.push_back(std::move(frame));
  }

  void add_outputs(NodeId id) {
    const NodeDef& node = graph_.nodes[id];
    const OpInfo& op = op_of(node, ops_);
    first_slot_[id] = std::uint32_t(plan_.slots.size());
    for (std::size_t i = 0; i < node.out_types.size(); ++i)
      plan_.slots.push_back({0, output_space(op, node, i, partitions_.devices[home_].space)});
  }

  void add_node(const Member& m) {
    const NodeDef& def = graph_.nodes[m.id];
    const OpInfo& op = op_of(def, ops_);
    const auto number = std::uint32_t(plan_.nodes.size());
    PlanNode node;
    node.first_input = std::uint32_t(plan_.input_slots.size());
    node.first_slot = first_slot_[m.id];
    node.outputs = std::uint16_t(ends(m) ? 0 : def.out_types.size());
    node.frame = std::uint16_t(plan_frame_[frame_of(m)]);
    node.role = op.def.role;
    node.cheap =
        op.def.cheap || structural(op.def.role) || (op.def.elementwise && is_small(graph_, def));
    PlanInfo info = describe(def, op);
    if (m.loop) {
      const Frames::Frame& frame = frames_.frames[frames_.of_node[m.id]];
      const NodeId next = frame.next;
      node.role = frame.is_function() ? Role::invoke : Role::loop;
      node.cheap = !frame.is_function();
      if (frame.is_function()) info.calls = plan_frame_[frames_.of_node[m.id]];
      node.first_slot = first_slot_[next];
      node.outputs = std::uint16_t(graph_.nodes[next].out_types.size());
      info.name = loop_name(def);
    }
    if (begins(m)) {  // waits only for the loop
      plan_.pending.push_back(0);
      plan_.nodes.push_back(node);
      plan_.info.push_back(std::move(info));
      return;
    }
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
      successors_[numbering_.source(in.node)].push_back({number, false});
      ++pending;
    }
    if (op.def.role == Role::invoke)
      info.calls = plan_frame_[frames_.called_by(m.id, function_number(def))];
    for (NodeId c : def.control) {
      const bool among_functions = op.def.role == Role::function_return &&
                                   op_of(graph_.nodes[c], ops_).def.role == Role::function_return;
      if (ends(m) && among_functions) continue;  // each ends in a frame of its own
      successors_[numbering_.source(c)].push_back({number, true});
      ++pending;
    }
    if (!info.handles.empty())
      info.resource = info.handles.front();
    else if (info.external)
      info.resource = resource_of_device(def, info.external->resource);
    plan_.pending.push_back(pending);
    if (pending == 0) plan_.roots.push_back(number);
    plan_.writes = plan_.writes || (info.external && info.external->commits);
    plan_.draws = plan_.draws || op.def.random;
    plan_.nodes.push_back(node);
    plan_.info.push_back(std::move(info));
  }

  PlanInfo describe(const NodeDef& def, const OpInfo& op) const {
    PlanInfo info;
    info.name = def.name;
    info.replica = def.replica;
    // All parts of a loop on several devices have the same key.
    const bool loop = op.def.role == Role::loop_body;
    info.random_key =
        hash_combine(hash_text(loop ? loop_name(def) + "/begin" : original_name(def), graph_.seed),
                     std::uint64_t(std::max(def.replica, 0)));
    info.epoch = epoch_of(def);
    if (op.def.role == Role::external) info.external = &op.def.external;
    if (op.def.role == Role::send || op.def.role == Role::recv)
      info.channel = ChannelId(int_attr(def, "channel", 0));
    info.lag = std::uint32_t(int_attr(def, kLagAttr, 0));
    return info;
  }

  std::uint32_t resource_index(const NodeDef& handle) {
    auto [at, added] =
        resources_.try_emplace(resource_key(handle, ops_), std::uint32_t(plan_.resources.size()));
    if (!added) return at->second;
    ResourceRef ref;
    ref.kind = op_of(handle, ops_).def.external.resource;
    ref.container = resource_container(handle);
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

  const GraphDef& graph_;
  const StepGraph& step_;
  const Partitions& partitions_;
  const std::uint32_t home_;
  const OpRegistry& ops_;
  const Numbering& numbering_;
  const Frames& frames_;
  const std::vector<Member>& members_;
  std::vector<std::uint32_t>& first_slot_;
  std::map<NodeId, std::uint32_t> feed_slot_;
  Plan plan_;
  std::vector<std::uint32_t> plan_frame_;  // by frame of the step
  std::vector<std::vector<PlanEdge>> successors_;
  std::map<std::string, std::uint32_t> resources_;  // by key
  std::map<std::string, std::uint32_t> of_device_;  // by kind
};

bool allocates(const PlanInfo& info, Role role) {
  if (role == Role::external) return info.external->order == External::Order::none;
  return role == Role::copy || role == Role::recv ||
         (role == Role::kernel && info.def.op != "Const");
}

// Moves a node out of the step. A loop's definition is made from nodes that are moved later.
NodeDef definition(GraphDef& graph, const Frames& frames, const Member& m) {
  if (!m.loop) return std::move(graph.nodes[m.id]);
  const NodeDef& body = graph.nodes[m.id];
  const NodeDef& next = graph.nodes[frames.frames[frames.of_node[m.id]].next];
  NodeDef loop;
  loop.name = loop_name(body);
  loop.op = body.op == kFunctionBodyOp ? "Call" : "While";
  loop.device = body.device;
  loop.replica = body.replica;
  loop.site = body.site;
  loop.out_types = next.out_types;
  loop.out_shapes = next.out_shapes;
  return loop;
}

}  // namespace

std::vector<Plan> make_plans(StepGraph step, const Partitions& partitions, const Frames& frames,
                             const OpRegistry& ops) {
  Numbering numbering(step.graph, partitions, frames);
  std::vector<Plan> plans;
  for (std::uint32_t i = 0; i < partitions.devices.size(); ++i)
    plans.push_back(Flattener(step, partitions, i, ops, numbering).run());
  // Last, because readers of a node need its definition, and may be on other devices.
  for (std::size_t p = 0; p < plans.size(); ++p)
    for (std::size_t i = 0; i < plans[p].info.size(); ++i)
      plans[p].info[i].def = definition(step.graph, frames, numbering.members[p][i]);
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
