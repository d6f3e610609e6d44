#include "troupe/apps/bench/plan_draft.hpp"

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
    if (plan_.pending[i] == 0) plan_.roots.push_back(i);
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.from < b.from; });
  for (const Edge& edge : edges) {
    PlanNode& from = plan_.nodes[edge.from];
    if (from.edges++ == 0) from.first_edge = std::uint32_t(plan_.edges.size());
    plan_.edges.push_back({edge.to, edge.control});
  }
  PlanFrame root;
  root.nodes = count;
  root.slots = std::uint32_t(plan_.slots.size());
  plan_.frames.push_back(std::move(root));
  return std::move(plan_);
}

}  // namespace troupe
