#include "actors/burst/detail/plan_check.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "actors/burst/detail/frame_check.hpp"
#include "actors/burst/loaded_plan.hpp"

namespace troupe::detail {
namespace {

bool in_range(std::uint64_t first, std::uint64_t count, std::size_t size) {
  return first + count <= size;
}

Status check_sizes(const Plan& p) {
  if (p.info.size() != p.nodes.size())
    return invalid_argument("plan: info is not parallel to nodes");
  if (p.nodes.size() >= LoadedPlan::kEdgeNode) return invalid_argument("plan: too many nodes");
  if (p.frames.size() > std::numeric_limits<std::uint16_t>::max())
    return invalid_argument("plan: too many loops");
  return ok_status();
}

Status check_node(const Plan& p, std::uint32_t i) {
  const PlanNode& node = p.nodes[i];
  const PlanInfo& info = p.info[i];
  auto bad = [&](const char* what) {
    return invalid_argument("plan: node '" + info.name + "' " + what);
  };
  switch (node.role) {
    case Role::enter:
    case Role::exit:
    case Role::next_iteration:
      return bad("is part of a loop in another form than that of frames");
    case Role::switch_:
      if (node.inputs != 2 || node.outputs < 1) return bad("is no Switch");
      break;
    case Role::merge:
      if (node.inputs == 0 || node.outputs < 1 || node.outputs > 2) return bad("is no Merge");
      break;
    case Role::loop_cond:
      if (node.inputs != 1 || node.outputs != 1) return bad("hands no predicate on");
      break;
    case Role::keep:
      if (node.inputs != 2 || node.outputs != 1) return bad("pushes nothing onto a list");
      break;
    case Role::kept:
      if (node.inputs != 1 || node.outputs != 2) return bad("takes nothing off a list");
      break;
    case Role::copy:
      if (node.inputs != 1 || node.outputs != 1) return bad("is no copy");
      break;
    case Role::send:
      if (node.inputs > 1 || node.outputs != 0) return bad("is no Send");
      break;
    case Role::recv:
      if (node.inputs != 0 || node.outputs > 1) return bad("is no Recv");
      if (info.lag != 0 &&
          (node.frame >= p.frames.size() || info.lag >= p.frames[node.frame].window))
        return bad("takes what was sent before any iteration under way");
      break;
    case Role::external:
      if (info.external == nullptr) return bad("says nothing of what it asks for");
      if (info.resource >= p.resources.size()) return bad("has no resource");
      break;
    default:
      break;
  }
  if (!in_range(node.first_input, node.inputs, p.input_slots.size())) return bad("has no inputs");
  if (!in_range(node.first_slot, node.outputs, p.slots.size())) return bad("has no slots");
  if (!in_range(node.first_edge, node.edges, p.edges.size())) return bad("has no edges");
  if (info.resource != ~0u && info.resource >= p.resources.size()) return bad("has no resource");
  for (std::uint32_t e = 0; e < node.edges; ++e) {
    std::uint32_t to = p.edges[node.first_edge + e].node;
    if (to >= p.nodes.size() || to <= i) return bad("has an edge that does not lead onward");
  }
  return ok_status();
}

Status check_slots(const Plan& p) {
  auto outside = [&](std::uint32_t slot) { return slot >= p.slots.size(); };
  if (std::any_of(p.input_slots.begin(), p.input_slots.end(), outside))
    return invalid_argument("plan: an input is no slot");
  for (const PlanFeed& feed : p.feeds)
    if (outside(feed.slot)) return invalid_argument("plan: a feed has no slot");
  for (const PlanFetch& fetch : p.fetches)
    if (outside(fetch.slot)) return invalid_argument("plan: a fetch has no slot");
  return ok_status();
}

// A node must wait for its inputs: the producer has an edge to the reader, unless it is fed.
Status check_inputs(const Plan& p) {
  constexpr std::uint32_t kFed = ~0u;
  std::vector<std::uint32_t> producer(p.slots.size(), kNoNode - 1);
  for (std::uint32_t i = 0; i < p.nodes.size(); ++i)
    for (std::uint32_t k = 0; k < p.nodes[i].outputs; ++k) {
      std::uint32_t& owner = producer[p.nodes[i].first_slot + k];
      if (owner != kNoNode - 1)
        return invalid_argument("plan: node '" + p.info[i].name + "' shares a slot");
      owner = i;
    }
  for (const PlanFeed& feed : p.feeds) producer[feed.slot] = kFed;
  std::vector<std::uint64_t> waits;  // (reader, producer), ascending
  waits.reserve(p.edges.size());
  for (std::uint32_t i = 0; i < p.nodes.size(); ++i)
    for (std::uint32_t e = 0; e < p.nodes[i].edges; ++e) {
      const PlanEdge& edge = p.edges[p.nodes[i].first_edge + e];
      if (!edge.control) waits.push_back(std::uint64_t{edge.node} << 32 | i);
    }
  std::sort(waits.begin(), waits.end());
  for (std::uint32_t i = 0; i < p.nodes.size(); ++i)
    for (std::uint32_t k = 0; k < p.nodes[i].inputs; ++k) {
      std::uint32_t from = producer[p.input_slots[p.nodes[i].first_input + k]];
      if (from != kFed &&
          !std::binary_search(waits.begin(), waits.end(), std::uint64_t{i} << 32 | from))
        return invalid_argument("plan: node '" + p.info[i].name + "' does not wait for its input " +
                                std::to_string(k));
    }
  return ok_status();
}

// The counts of a Merge share one word (LoadedPlan).
Status check_merges(const Plan& p) {
  std::vector<std::uint32_t> data(p.nodes.size(), 0), control(p.nodes.size(), 0);
  for (const PlanEdge& edge : p.edges) ++(edge.control ? control : data)[edge.node];
  for (std::uint32_t i = 0; i < p.nodes.size(); ++i)
    if (p.nodes[i].role == Role::merge && (data[i] >= 1u << 15 || control[i] >= 1u << 14))
      return invalid_argument("plan: Merge '" + p.info[i].name + "' has too many inputs");
  return ok_status();
}

}  // namespace

Status check_plan(const Plan& plan) {
  TROUPE_TRY(check_sizes(plan));
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) TROUPE_TRY(check_node(plan, i));
  TROUPE_TRY(check_slots(plan));
  TROUPE_TRY(check_inputs(plan));
  TROUPE_TRY(check_merges(plan));
  return check_frames(plan);
}

}  // namespace troupe::detail
