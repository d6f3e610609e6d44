#include "actors/burst/detail/frame_check.hpp"

#include <string>
#include <vector>

namespace troupe::detail {
namespace {

bool within(std::uint64_t first, std::uint64_t count, std::uint64_t outer_first,
            std::uint64_t outer_count) {
  return first >= outer_first && first + count <= outer_first + outer_count;
}

class FrameCheck {
 public:
  explicit FrameCheck(const Plan& plan) : p_(plan) {}

  Status run() {
    if (p_.frames.empty())  // a plan made by hand: all of it is the root
      return each_node_in(1);
    for (std::uint32_t f = 1; f < p_.frames.size(); ++f) TROUPE_TRY(check_frame(f));
    TROUPE_TRY(each_node_in(std::uint32_t(p_.frames.size())));
    TROUPE_TRY(check_edges());
    return check_ends();
  }

 private:
  Status bad(std::uint32_t node, const std::string& what) const {
    return invalid_argument("plan: node '" + p_.info[node].name + "' " + what);
  }

  // The frame's place in the plan, and its three nodes.
  Status check_frame(std::uint32_t f) {
    const PlanFrame& frame = p_.frames[f];
    const std::string name = "plan: frame " + std::to_string(f);
    if (frame.parent >= f) return invalid_argument(name + " is in no frame before it");
    const PlanFrame& parent = p_.frames[frame.parent];
    if (!within(frame.first_node, frame.nodes, parent.first_node, parent.nodes) ||
        !within(frame.first_slot, frame.slots, parent.first_slot, parent.slots) ||
        frame.first_node + std::uint64_t{frame.nodes} > p_.nodes.size() ||
        frame.first_slot + std::uint64_t{frame.slots} > p_.slots.size())
      return invalid_argument(name + " reaches beyond the frame around it");
    for (std::uint32_t node : {frame.loop, frame.body, frame.next})
      if (node >= p_.nodes.size()) return invalid_argument(name + " lacks a node");
    const PlanNode& loop = p_.nodes[frame.loop];
    const PlanNode& body = p_.nodes[frame.body];
    const PlanNode& next = p_.nodes[frame.next];
    if (loops_.size() != p_.nodes.size()) loops_.resize(p_.nodes.size());
    if (frame.is_function()) return check_function(f);
    if (loop.role != Role::loop || loop.frame != frame.parent || loops_[frame.loop])
      return bad(frame.loop, "does not stand for its loop");
    if (body.role != Role::loop_body || body.frame != f) return bad(frame.body, "begins no loop");
    if (next.role != Role::loop_next || next.frame != f) return bad(frame.next, "ends no loop");
    if (loop.outputs != frame.variables || next.inputs != frame.variables + 1u ||
        next.outputs != 0 || body.inputs != 0 || body.outputs + 1u != loop.inputs ||
        body.outputs < frame.variables)
      return bad(frame.loop, "has another number of variables than its body");
    if (frame.window == 0) return bad(frame.loop, "has no iteration under way");
    loops_[frame.loop] = true;
    return ok_status();
  }

  // Of functions that call each other, the first is called from outside and has the others inside.
  Status check_function(std::uint32_t f) {
    const PlanFrame& frame = p_.frames[f];
    const PlanNode& body = p_.nodes[frame.body];
    const PlanNode& next = p_.nodes[frame.next];
    const bool first = frame.leader == f;
    if (!first && (frame.leader > f || frame.parent != frame.leader ||
                   p_.frames[frame.leader].leader != frame.leader ||
                   p_.frames[frame.leader].loop != frame.loop))
      return bad(frame.body, "begins a function that nobody calls from outside");
    const PlanNode& call = p_.nodes[frame.loop];
    if (first && (call.role != Role::invoke || call.frame != frame.parent || loops_[frame.loop] ||
                  p_.info[frame.loop].calls != f))
      return bad(frame.loop, "does not call its function");
    if (body.role != Role::function_body || body.frame != f)
      return bad(frame.body, "begins no function");
    if (next.role != Role::function_return || next.frame != f)
      return bad(frame.next, "ends no function");
    if (next.outputs != 0 || body.inputs != 0 || next.inputs != frame.variables)
      return bad(frame.next, "has another number of results than its function");
    if (first) loops_[frame.loop] = true;
    return ok_status();
  }

  // A call may call a function around it, or one that shares its frame.
  Status check_call(std::uint32_t i) const {
    const PlanNode& node = p_.nodes[i];
    const std::uint32_t f = p_.info[i].calls;
    if (f == 0 || f >= p_.frames.size() || !p_.frames[f].is_function())
      return bad(i, "calls no function");
    const PlanFrame& frame = p_.frames[f];
    std::uint32_t around = node.frame;
    while (around != 0 && !p_.frames[around].is_function()) around = p_.frames[around].parent;
    if (frame.loop != i && p_.frames[around].leader != frame.leader)
      return bad(i, "calls a function that is not around it");
    if (node.inputs != p_.nodes[frame.body].outputs || node.outputs != frame.variables)
      return bad(i, "has other arguments or results than the function that it calls");
    return ok_status();
  }

  // Nodes and slots lie in the range of their frame and in none inside it.
  Status each_node_in(std::uint32_t frames) {
    std::vector<std::uint32_t> owner(p_.nodes.size(), 0), slot_owner(p_.slots.size(), 0);
    std::size_t loops = 0, functions = 0, ends = 0;
    for (std::uint32_t f = 1; f < frames; ++f) {
      functions += p_.frames[f].is_function();
      const PlanFrame& frame = p_.frames[f];
      for (std::uint32_t i = 0; i < frame.nodes; ++i) {
        std::uint32_t& now = owner[frame.first_node + i];
        if (now != frame.parent) return invalid_argument("plan: two frames share a node");
        now = f;
      }
      for (std::uint32_t i = 0; i < frame.slots; ++i) slot_owner[frame.first_slot + i] = f;
    }
    for (std::uint32_t i = 0; i < p_.nodes.size(); ++i) {
      const PlanNode& node = p_.nodes[i];
      if (node.frame != owner[i]) return bad(i, "is in a frame that is not around it");
      for (std::uint32_t k = 0; k < node.outputs; ++k)
        if (slot_owner[node.first_slot + k] != node.frame) return bad(i, "has slots elsewhere");
      loops +=
          node.role == Role::loop || node.role == Role::loop_body || node.role == Role::loop_next;
      ends += node.role == Role::function_body || node.role == Role::function_return;
      if (node.role == Role::invoke) TROUPE_TRY(check_call(i));
      if (node.frame != 0) TROUPE_TRY(check_inside(i));
    }
    if (loops != 3 * (std::size_t(frames - 1) - functions) || ends != 2 * functions)
      return invalid_argument("plan: a loop without a frame of its own");
    return ok_status();
  }

  Status check_inside(std::uint32_t i) const {
    switch (p_.nodes[i].role) {
      case Role::external:
        // Queues are allowed; reads and writes, which have an order in the run, are not.
        if (p_.info[i].external && p_.info[i].external->order == External::Order::none)
          return ok_status();
        return unimplemented("plan: node '" + p_.info[i].name +
                             "' waits for what is outside of its loop's partition");
      case Role::placeholder:
        return bad(i, "is fed, but in a loop");
      default:
        return ok_status();
    }
  }

  Status check_edges() const {
    for (std::uint32_t i = 0; i < p_.nodes.size(); ++i)
      for (std::uint32_t e = 0; e < p_.nodes[i].edges; ++e)
        if (p_.nodes[p_.edges[p_.nodes[i].first_edge + e].node].frame != p_.nodes[i].frame)
          return bad(i, "has an edge into another frame");
    auto in_loop = [&](std::uint32_t slot) {
      for (std::size_t f = 1; f < p_.frames.size(); ++f)
        if (slot - p_.frames[f].first_slot < p_.frames[f].slots) return true;
      return false;
    };
    for (const PlanFeed& feed : p_.feeds)
      if (in_loop(feed.slot)) return invalid_argument("plan: a feed is in a loop");
    for (const PlanFetch& fetch : p_.fetches)
      if (in_loop(fetch.slot)) return invalid_argument("plan: a fetch is in a loop");
    return check_feed_readers();
  }

  // A feed has no edge, and is released after one iteration: readers in a loop are refused.
  Status check_feed_readers() const {
    std::vector<bool> fed(p_.slots.size(), false);
    for (const PlanFeed& feed : p_.feeds) fed[feed.slot] = true;
    for (std::uint32_t i = 0; i < p_.nodes.size(); ++i)
      for (std::uint32_t k = 0; k < p_.nodes[i].inputs && p_.nodes[i].frame != 0; ++k)
        if (fed[p_.input_slots[p_.nodes[i].first_input + k]])
          return bad(i, "reads a feed, but in a loop");
    return ok_status();
  }

  // An iteration begins at one node and ends at another.
  Status check_ends() const {
    std::vector<bool> waits(p_.nodes.size(), false);
    for (const PlanEdge& edge : p_.edges) waits[edge.node] = true;
    for (std::uint32_t i = 0; i < p_.nodes.size(); ++i) {
      const PlanNode& node = p_.nodes[i];
      if (node.frame == 0) continue;
      const PlanFrame& frame = p_.frames[node.frame];
      if (!waits[i] != (i == frame.body)) return bad(i, "does not wait for its loop's body");
      if ((node.edges == 0) != (i == frame.next)) return bad(i, "is not waited for by its loop");
    }
    return ok_status();
  }

  const Plan& p_;
  std::vector<bool> loops_;  // by node: a loop or call that has a frame
};

}  // namespace

Status check_frames(const Plan& plan) { return FrameCheck(plan).run(); }

}  // namespace troupe::detail
