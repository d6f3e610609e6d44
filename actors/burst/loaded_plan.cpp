#include "actors/burst/loaded_plan.hpp"

#include <algorithm>

#include "actors/burst/detail/plan_check.hpp"

namespace troupe {

Expected<std::shared_ptr<const LoadedPlan>> LoadedPlan::make(std::shared_ptr<const Plan> plan,
                                                             Device& device,
                                                             MakeKernel make_kernel) {
  TROUPE_TRY(detail::check_plan(*plan));
  std::shared_ptr<LoadedPlan> program(new LoadedPlan);
  program->plan_ = std::move(plan);
  program->device_ = &device;
  program->asynchronous_ = device.space() == MemorySpace::device;
  const Plan& p = *program->plan_;
  program->nodes_.resize(p.nodes.size());
  for (std::uint32_t i = 0; i < p.nodes.size(); ++i) {
    if (p.nodes[i].role != Role::kernel) continue;
    auto kernel = make_kernel(p.info[i]);
    if (!kernel.ok()) return program->explain(i, kernel.status());
    program->nodes_[i].kernel = kernel->get();
    program->kernels_.push_back(std::move(kernel).value());
  }
  TROUPE_TRY(program->prepare());
  program->lay_out();
  return std::shared_ptr<const LoadedPlan>(std::move(program));
}

// All at once, so that what the device compiles for them is one program.
Status LoadedPlan::prepare() const {
  std::vector<Kernel*> kernels;
  for (const auto& kernel : kernels_) kernels.push_back(kernel.get());
  return device_->prepare(kernels).in("for a plan on " + plan_->device);
}

void LoadedPlan::lay_out() {
  const Plan& p = *plan_;
  counts_.assign(p.nodes.size(), 0);
  readers_.assign(p.slots.size(), 0);
  edges_.reserve(p.edges.size());
  for (const PlanEdge& edge : p.edges) {
    bool merge = p.nodes[edge.node].role == Role::merge;
    edges_.push_back(edge.node | (merge ? kMerge : 0) | (merge && edge.control ? kControl : 0));
    counts_[edge.node] += merge && edge.control ? kMergeControl : 1;
  }
  for (std::uint32_t slot : p.input_slots) ++readers_[slot];
  // A fetch counts as a reader, so that no node is the last reader and moves the value out.
  for (const PlanFetch& fetch : p.fetches) ++readers_[fetch.slot];
  lay_out_frames();
  made_by_kernel_.assign(p.slots.size(), false);
  for (std::uint32_t i = 0; i < p.nodes.size(); ++i) lay_out(i);
  std::sort(recvs_.begin(), recvs_.end());
  mark_conditional();
  for (std::uint32_t i = 0; i < p.nodes.size(); ++i)
    if (nodes_[i].role == Role::external && p.info[i].epoch == 0 &&
        p.info[i].external->order == External::Order::read && !(nodes_[i].flags & kConditional)) {
      nodes_[i].flags |= kFirstRead;
      first_reads_.push_back(i);
    }
}

void LoadedPlan::lay_out(std::uint32_t i) {
  const PlanNode& from = plan_->nodes[i];
  Node& node = nodes_[i];
  node.first_input = from.first_input;
  node.first_slot = from.first_slot;
  node.first_edge = from.first_edge;
  node.edges = from.edges;
  node.inputs = from.inputs;
  node.outputs = from.outputs;
  node.role = from.role;
  node.frame = from.frame;
  for (std::uint32_t k = 0; k < node.outputs; ++k)
    if (readers_[node.first_slot + k] == 0) node.flags |= kUnread;
  random_keys_.push_back(plan_->info[i].random_key);
  if (node.kernel && !asynchronous_ && !(node.flags & kUnread)) node.flags |= kOrdinary;
  // Only lanes issue work to a device.
  const bool issues = asynchronous_ && (node.kernel || node.role == Role::copy);
  if (from.cheap && !issues) node.flags |= kCheap;
  const std::uint32_t* in = plan_->input_slots.data() + node.first_input;
  const bool passes_on = node.role == Role::switch_ || node.role == Role::merge;
  if (node.kernel || (passes_on && made_by_kernel_[in[0]]))
    for (std::uint32_t k = 0; k < node.outputs; ++k) made_by_kernel_[node.first_slot + k] = true;
  if (asynchronous_ && node.kernel && pushes(i) && plan_->slots[in[1]].space == MemorySpace::device)
    node.flags |= kPushes;
  if (node.role == Role::merge && !reads_a_feed(from)) counts_[i] |= kMergeWaits;
  // A Merge that reads a feed does not wait for its other inputs.
  const bool due = node.role == Role::merge ? counts_[i] < kMergeControl : counts_[i] == 0;
  if (due && node.frame == 0) roots_.push_back(i);
  if (node.role != Role::kernel) has_external_ = true;
  if (node.role == Role::recv) recvs_.emplace_back(plan_->info[i].channel, i);
}

// Invariants stay in their slots for all iterations: an extra reader keeps them.
void LoadedPlan::lay_out_frames() {
  const Plan& p = *plan_;
  in_order_.assign(p.frames.size(), true);
  nodes_of_call_.assign(p.frames.size(), 0);
  in_function_.assign(std::max<std::size_t>(p.frames.size(), 1), false);
  for (std::size_t f = 1; f < p.frames.size(); ++f) {
    const PlanFrame& frame = p.frames[f];
    in_function_[f] = frame.is_function() || in_function_[frame.parent];
    if (frame.is_function()) {
      nodes_of_call_[f] += frame.nodes;
      if (frame.leader != f) nodes_of_call_[frame.leader] -= frame.nodes;
      continue;
    }
    const PlanNode& body = p.nodes[frame.body];
    for (std::uint32_t k = frame.variables; k < body.outputs; ++k) ++readers_[body.first_slot + k];
    const std::uint32_t* next = p.input_slots.data() + p.nodes[frame.next].first_input + 1;
    for (std::uint32_t v = 0; v < frame.variables; ++v)
      if (next[v] - body.first_slot < frame.variables && next[v] != body.first_slot + v)
        in_order_[f] = false;
  }
}

// Nodes after a Switch or a Recv may be dead. Edges lead to higher numbers, so one pass over the
// nodes is enough.
void LoadedPlan::mark_conditional() {
  for (Node& node : nodes_) {
    if (node.role == Role::switch_ || node.role == Role::kept || node.role == Role::recv)
      node.flags |= kConditional;
    if (!(node.flags & kConditional)) continue;
    for (std::uint32_t e = 0; e < node.edges; ++e)
      nodes_[edges_[node.first_edge + e] & kEdgeNode].flags |= kConditional;
  }
}

// A fed input is live from the start.
bool LoadedPlan::reads_a_feed(const PlanNode& node) const {
  for (std::uint32_t k = 0; k < node.inputs; ++k)
    for (const PlanFeed& feed : plan_->feeds)
      if (feed.slot == plan_->input_slots[node.first_input + k]) return true;
  return false;
}

std::uint32_t LoadedPlan::producer(std::uint32_t slot) const {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    if (slot - nodes_[i].first_slot < nodes_[i].outputs) return i;
  return kNoNode;
}

bool LoadedPlan::pushes(std::uint32_t node) const {
  const std::vector<DType>& types = plan_->info[node].def.out_types;
  const bool makes_list = types.size() == 1 && types[0] == DType::list;
  const Role role = nodes_[node].role;
  return role == Role::keep || (role == Role::kernel && makes_list && nodes_[node].inputs == 2);
}

std::uint32_t LoadedPlan::frame_of_loop(std::uint32_t node) const {
  const std::vector<PlanFrame>& frames = plan_->frames;
  std::uint32_t f = nodes_[node].frame + 1;
  while (frames[f].loop != node) ++f;
  return f;
}

std::uint32_t LoadedPlan::end_of_frames(std::uint32_t frame) const {
  const std::vector<PlanFrame>& frames = plan_->frames;
  const PlanFrame& around = frames[frame];
  std::uint32_t f = frame + 1;
  while (f < frames.size() && frames[f].first_node - around.first_node < around.nodes) ++f;
  return f;
}

std::uint32_t LoadedPlan::recv(ChannelId channel) const {
  auto found = std::lower_bound(recvs_.begin(), recvs_.end(), std::pair(channel, std::uint32_t{0}));
  return found == recvs_.end() || found->first != channel ? kNoNode : found->second;
}

Status LoadedPlan::explain(std::uint32_t node, const Status& status) const {
  const PlanInfo& info = plan_->info[node];
  return status.at(info.def.site)
      .in("in node '" + info.name + "' (" + info.def.op + ") on " + plan_->device);
}

}  // namespace troupe
