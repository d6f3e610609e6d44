#include "actors/burst/detail/progress.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::burst {
namespace {

std::size_t words_for(std::size_t bytes) { return (bytes + 3) / 4; }

}  // namespace

Progress::Progress(const LoadedPlan& program, const std::atomic<bool>& cancelled, Failure& failure)
    : program_(program),
      nodes_(program.nodes()),
      edges_(program.edges().data()),
      input_slots_(program.input_slots().data()),
      failure_(failure),
      spares_(program.device().allocator()),
      place_{.device = &program.device(),
             .cancelled = &cancelled,
             .spares = program.has_loops() && !program.asynchronous() ? &spares_ : nullptr} {
  counts_.resize(program.counts().size());
  readers_.resize(program.readers().size());
  slots_.resize(program.readers().size());
  ready_.resize(nodes_.size() * (program.has_loops() ? 2 : 1));
  draws_.resize(std::max<std::size_t>(program.plan().frames.size(), 1));
  if (program.has_external()) outside_.resize(nodes_.size());
}

// Copies the initial counts and readers. Slots were emptied by their last readers.
void Progress::reset(std::uint64_t run) {
  draws_[0] = run;
  if (!counts_.empty())
    std::memcpy(counts_.data(), program_.counts().data(), counts_.size() * sizeof counts_[0]);
  if (!readers_.empty())
    std::memcpy(readers_.data(), program_.readers().data(), readers_.size() * sizeof readers_[0]);
  if (!outside_.empty()) std::memset(outside_.data(), 0, outside_.size());
  std::copy(program_.roots().begin(), program_.roots().end(), ready_.begin());
  ready_begin_ = 0;
  ready_end_ = program_.roots().size();
  nodes_done_ = 0;
}

// After a successful step, only fetched values are left.
void Progress::clear(bool failed) {
  if (failed) {
    for (Slot& slot : slots_) slot = {};
  } else {
    for (const PlanFetch& fetch : program_.plan().fetches) slots_[fetch.slot] = {};
  }
  for (std::uint32_t slot : dead_slots_) slots_[slot].dead = false;
  dead_slots_.clear();
  spares_.clear();
}

// Until the next iteration of any loop begins, each node becomes ready at most once.
void Progress::make_room() {
  if (ready_begin_ == ready_end_) {
    ready_begin_ = ready_end_ = 0;
  } else if (ready_end_ + nodes_.size() > ready_.size()) {
    std::copy(ready_.begin() + std::ptrdiff_t(ready_begin_),
              ready_.begin() + std::ptrdiff_t(ready_end_), ready_.begin());
    ready_end_ -= ready_begin_;
    ready_begin_ = 0;
  }
}

void Progress::take_ready(std::vector<std::uint32_t>& to) {
  to.insert(to.end(), ready_.begin() + std::ptrdiff_t(ready_begin_),
            ready_.begin() + std::ptrdiff_t(ready_end_));
  ready_begin_ = ready_end_ = 0;
}

void Progress::put_back_ready(const std::uint32_t* entries, std::uint32_t n) {
  const std::size_t came = ready_end_ - ready_begin_;
  std::memmove(ready_.data() + n, ready_.data() + ready_begin_, came * sizeof ready_[0]);
  if (n > 0) std::memcpy(ready_.data(), entries, n * sizeof ready_[0]);
  ready_begin_ = 0;
  ready_end_ = n + came;
}

void Progress::take_to(Slot& to, std::uint32_t from) {
  if (--readers_[from] == 0)
    to = std::move(slots_[from]);
  else
    to = slots_[from];
}

void Progress::finish(std::uint32_t i, bool dead) {
  release_inputs(nodes_[i]);
  complete(i, dead);
}

void Progress::complete(std::uint32_t i, bool dead) {
  const LoadedPlan::Node& node = nodes_[i];
  for (std::uint32_t slot = node.first_slot; slot < node.first_slot + node.outputs; ++slot) {
    if (dead)
      mark_dead(slot);
    else if (readers_[slot] == 0)
      slots_[slot] = {};
  }
  count_down(node, dead);
  ++nodes_done_;
}

void Progress::count_down(const LoadedPlan::Node& from, bool dead) {
  for (std::uint32_t e = 0; e < from.edges; ++e) {
    LoadedPlan::Edge edge = edges_[from.first_edge + e];
    if (edge & LoadedPlan::kMerge) {
      count_down_merge(from, edge, dead);
      continue;
    }
    std::uint32_t left = --counts_[edge];
    if (dead) left = counts_[edge] |= LoadedPlan::kDead;
    if (is_due(left)) ready_[ready_end_++] = edge | left;
  }
}

void Progress::count_down_merge(const LoadedPlan::Node& from, LoadedPlan::Edge edge, bool dead) {
  const std::uint32_t merge = edge & LoadedPlan::kEdgeNode;
  std::uint32_t& count = counts_[merge];
  if (edge & LoadedPlan::kControl) {
    count -= LoadedPlan::kMergeControl;
  } else {
    --count;
    const bool live = !dead && feeds_live(from, nodes_[merge]);
    if (outside_[merge] & kRan) {
      const std::uint32_t taken = input_slot(merge, input_taken(count));
      if (live && taken - from.first_slot >= from.outputs)
        failure_.add(merge, invalid_argument("Merge: two inputs are live"));
      return;
    }
    if (!(count & LoadedPlan::kMergeWaits)) return;
    // In a loop, all branches must be over before the next iteration begins.
    if ((!live || nodes_[merge].frame != 0) && (count & kMergeDataEdges) != 0) return;
    count &= ~LoadedPlan::kMergeWaits;
  }
  if (is_merge_due(count)) ready_[ready_end_++] = merge;
}

bool Progress::feeds_live(const LoadedPlan::Node& from, const LoadedPlan::Node& merge) const {
  for (std::uint32_t k = 0; k < merge.inputs; ++k) {
    std::uint32_t slot = input_slots_[merge.first_input + k];
    if (slot - from.first_slot < from.outputs && !slots_[slot].dead) return true;
  }
  return false;
}

void Progress::complete_with_dead_outputs(const LoadedPlan::Node& from) {
  for (std::uint32_t e = 0; e < from.edges; ++e) {
    LoadedPlan::Edge edge = edges_[from.first_edge + e];
    if (edge & LoadedPlan::kMerge) {
      count_down_merge(from, edge, false);
      continue;
    }
    const LoadedPlan::Node& to = nodes_[edge];
    for (std::uint32_t k = 0; k < to.inputs; ++k) {
      std::uint32_t slot = input_slots_[to.first_input + k];
      if (slot - from.first_slot < from.outputs && slots_[slot].dead)
        counts_[edge] |= LoadedPlan::kDead;
    }
    std::uint32_t left = --counts_[edge];
    if (is_due(left)) ready_[ready_end_++] = edge | left;
  }
  ++nodes_done_;
}

void Progress::set_taken(std::uint32_t merge, std::uint32_t input) {
  outside_[merge] |= kRan;
  counts_[merge] = with_taken(counts_[merge], input);
}

void Progress::want(std::uint32_t i, bool dead) {
  outside_[i] |= dead ? kWanted | kIsDead : kWanted;
  release_inputs(nodes_[i]);
  if (outside_[i] & kArrived) arrive(i);
}

void Progress::arrive(std::uint32_t i) {
  outside_[i] |= kArrived;
  if (!(outside_[i] & kWanted) || failure_.failing()) return;
  const bool dead = outside_[i] & kIsDead;
  if (dead && nodes_[i].outputs > 0) slots_[nodes_[i].first_slot].tensor = {};
  complete(i, dead);
}

void Progress::reset_frame(const PlanFrame& frame) {
  std::memcpy(counts_.data() + frame.first_node, program_.counts().data() + frame.first_node,
              frame.nodes * sizeof counts_[0]);
  if (frame.slots > 0)
    std::memcpy(readers_.data() + frame.first_slot, program_.readers().data() + frame.first_slot,
                frame.slots * sizeof readers_[0]);
  std::memset(outside_.data() + frame.first_node, 0, frame.nodes);
  forget_dead(frame);
}

void Progress::forget_dead(const PlanFrame& frame) {
  if (dead_slots_.empty()) return;
  std::erase_if(dead_slots_, [&](std::uint32_t slot) {
    if (slot - frame.first_slot >= frame.slots) return false;
    slots_[slot].dead = false;
    return true;
  });
}

void Progress::save(const PlanFrame& frame, std::vector<std::uint32_t>& words) const {
  const std::size_t at = words.size();
  words.resize(at + frame.nodes + frame.slots + words_for(frame.nodes));
  std::uint32_t* to = words.data() + at;
  std::memcpy(to, counts_.data() + frame.first_node, frame.nodes * sizeof counts_[0]);
  to += frame.nodes;
  if (frame.slots > 0)
    std::memcpy(to, readers_.data() + frame.first_slot, frame.slots * sizeof readers_[0]);
  std::memcpy(to + frame.slots, outside_.data() + frame.first_node, frame.nodes);
}

void Progress::load(const PlanFrame& frame, const std::uint32_t* from) {
  std::memcpy(counts_.data() + frame.first_node, from, frame.nodes * sizeof counts_[0]);
  from += frame.nodes;
  if (frame.slots > 0)
    std::memcpy(readers_.data() + frame.first_slot, from, frame.slots * sizeof readers_[0]);
  std::memcpy(outside_.data() + frame.first_node, from + frame.slots, frame.nodes);
}

}  // namespace troupe::burst
