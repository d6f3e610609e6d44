#include "apps/bench/plan_draft.hpp"

#include <algorithm>

namespace troupe {

PlanDraft::PlanDraft(std::string device) { plan_.device = std::move(device); }

std::uint32_t PlanDraft::add(NodeSpec spec) {
  const auto index = std::uint32_t(plan_.nodes.size());
  PlanNode node;
  node.first_input = std::uint32_t(plan_.input_slots.size());
  node.first_slot = std::uint32_t(plan_.slots.size());
  node.inputs = std::uint16_t(spec.inputs.size());
  node.outputs = spec.outputs;
  node.role = spec.external ? Role::external : spec.role;
  node.frame = std::uint16_t(frame_);
  // What waits for nothing in a loop waits for the iteration.
  const bool begins = spec.role == Role::loop_body || spec.role == Role::function_body;
  if (frame_ != 0 && spec.inputs.empty() && spec.control.empty() && !begins)
    spec.control.push_back(frames_[frame_].body);
  plan_.nodes.push_back(node);
  PlanInfo info;
  info.def.name = info.name = std::move(spec.name);
  info.def.op = std::move(spec.op);
  info.external = spec.external;
  plan_.info.push_back(std::move(info));
  for (std::uint32_t slot : spec.inputs) {
    plan_.input_slots.push_back(slot);
    ++plan_.slots[slot].readers;
  }
  plan_.slots.resize(plan_.slots.size() + spec.outputs);
  producers_.resize(plan_.slots.size(), index);
  control_.push_back(std::move(spec.control));
  return index;
}

std::uint32_t PlanDraft::begin_loop(std::uint32_t loop) {
  PlanFrame frame;
  frame.loop = loop;
  frame.variables = plan_.nodes[loop].outputs;
  return begin_frame(std::move(frame), plan_.info[loop].name, Role::loop_body,
                     plan_.nodes[loop].inputs - 1u);
}

void PlanDraft::end_loop(std::vector<std::uint32_t> predicate_and_values) {
  end_frame(Role::loop_next, std::move(predicate_and_values));
}

std::uint32_t PlanDraft::begin_function(std::uint32_t call, std::uint16_t arguments,
                                        std::uint16_t results) {
  const auto number = std::uint32_t(frames_.size());
  const bool inside = frames_[frame_].is_function() && frames_[frame_].loop == call;
  PlanFrame frame;
  frame.loop = call;
  frame.variables = results;
  frame.leader = inside ? frame_ : number;
  if (!inside) plan_.info[call].calls = number;
  return begin_frame(std::move(frame), "f" + std::to_string(number), Role::function_body,
                     arguments);
}

void PlanDraft::end_function(std::vector<std::uint32_t> results) {
  end_frame(Role::function_return, std::move(results));
}

std::uint32_t PlanDraft::begin_frame(PlanFrame frame, const std::string& name, Role role,
                                     std::uint32_t outputs) {
  frame.name = name;
  frame.parent = frame_;
  frame.first_node = std::uint32_t(plan_.nodes.size());
  frame.first_slot = std::uint32_t(plan_.slots.size());
  frame_ = std::uint32_t(frames_.size());
  frames_.push_back(std::move(frame));
  const auto body = add({.name = name + "/body", .role = role, .outputs = std::uint16_t(outputs)});
  return frames_[frame_].body = body;
}

void PlanDraft::end_frame(Role role, std::vector<std::uint32_t> inputs) {
  const std::uint32_t first = frames_[frame_].first_node;
  std::vector<bool> waited(plan_.nodes.size(), false);
  for (auto i = first; i < waited.size(); ++i) {
    const PlanNode& node = plan_.nodes[i];
    for (std::uint32_t k = 0; k < node.inputs; ++k)
      waited[producers_[plan_.input_slots[node.first_input + k]]] = true;
    for (std::uint32_t from : control_[i]) waited[from] = true;
  }
  for (std::uint32_t slot : inputs) waited[producers_[slot]] = true;
  NodeSpec next{.name = frames_[frame_].name + "/next",
                .role = role,
                .inputs = std::move(inputs),
                .outputs = 0};
  for (auto i = first; i < waited.size(); ++i)
    if (plan_.nodes[i].frame == frame_ && !waited[i]) next.control.push_back(i);
  const auto end = add(std::move(next));
  PlanFrame& frame = frames_[frame_];
  frame.next = end;
  frame.nodes = std::uint32_t(plan_.nodes.size()) - frame.first_node;
  frame.slots = std::uint32_t(plan_.slots.size()) - frame.first_slot;
  frame_ = frame.parent;
}

void PlanDraft::feed(std::uint32_t slot) {
  plan_.feeds.push_back({slot, std::uint32_t(plan_.feeds.size())});
}

void PlanDraft::fetch(std::uint32_t slot) {
  plan_.slots[slot].fetched = true;
  plan_.fetches.push_back({slot, std::uint32_t(plan_.fetches.size())});
}

std::uint32_t PlanDraft::resource(ResourceRef ref) {
  plan_.resources.push_back(std::move(ref));
  return std::uint32_t(plan_.resources.size() - 1);
}

Plan PlanDraft::finish() {
  struct Edge {
    std::uint32_t from, to;
    bool control;
  };
  const auto count = std::uint32_t(plan_.nodes.size());
  std::vector<Edge> edges;
  plan_.pending.assign(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const PlanNode& node = plan_.nodes[i];
    for (std::uint32_t k = 0; k < node.inputs; ++k)
      edges.push_back({producers_[plan_.input_slots[node.first_input + k]], i, false});
    for (std::uint32_t from : control_[i]) edges.push_back({from, i, true});
    plan_.pending[i] = node.inputs + std::uint32_t(control_[i].size());
    if (plan_.pending[i] == 0 && node.frame == 0) plan_.roots.push_back(i);
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.from < b.from; });
  for (const Edge& edge : edges) {
    PlanNode& from = plan_.nodes[edge.from];
    if (from.edges++ == 0) from.first_edge = std::uint32_t(plan_.edges.size());
    plan_.edges.push_back({edge.to, edge.control});
  }
  frames_[0].nodes = count;
  frames_[0].slots = std::uint32_t(plan_.slots.size());
  plan_.frames = std::move(frames_);
  return std::move(plan_);
}

}  // namespace troupe
