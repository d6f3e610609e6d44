// How far a step is: what its nodes wait for, the values they made, and which are ready.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/burst/detail/failure.hpp"
#include "actors/burst/loaded_plan.hpp"
#include "devices/kernel.hpp"

namespace troupe::burst {

// Counts as LoadedPlan lays them out. No edge is to come any more; then `node | count` is the
// node's entry in the list of ready ones.
constexpr bool is_due(std::uint32_t count) { return (count & ~LoadedPlan::kDead) == 0; }
// Of a Merge: data edges still to come, and control edges above them.
constexpr std::uint32_t kMergeDataEdges = LoadedPlan::kMergeControl - 1;
constexpr int kMergeTakenShift = 16;
// A Merge does not wait for the data edges behind its first live one.
constexpr bool is_merge_due(std::uint32_t count) { return count < LoadedPlan::kMergeControl; }
// The count of a Merge that took an input, and which one it was.
constexpr std::uint32_t with_taken(std::uint32_t merge_count, std::uint32_t input) {
  return (merge_count & kMergeDataEdges) | (input + 1) << kMergeTakenShift;
}
constexpr std::uint32_t input_taken(std::uint32_t merge_count) {
  return (merge_count >> kMergeTakenShift) - 1;
}
static_assert(LoadedPlan::kMergeControl == 1u << kMergeTakenShift);

// The counts, values and ready nodes of one step: what the hot loop touches.
//
// A node waits for as many edges as its count says. When a node ends, its inputs lose a reader each
// and its successors an edge each; a successor without edges left is put into the list of ready
// nodes. A slot's value is let go by its last reader. A node that ends dead (on a branch not taken)
// makes its successors dead, but for a Merge with a live input.
//
// A frame's part of all this (a loop's or a function's) can be reset, or kept aside and brought
// back. What a node of the outside is still waiting for is known here, too: such a node ends when
// it was reached (`want`) and its outputs are here (`arrive`), in any order.
//
// Owned by the step; used by the burst in flight, or between bursts. The methods that the hot loop
// calls are inline.
class Progress {
 public:
  // All arguments live as long as this.
  Progress(const LoadedPlan& program, const std::atomic<bool>& cancelled, Failure& failure);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A new step, whose random numbers hang on `run`. REQUIRES: the last one was cleared.
  void reset(std::uint64_t run);
  // The step is over: lets go of all values, after a failure of more than those that were fetched.
  void clear(bool failed);

  // Ready nodes, oldest first; an entry is a node, with LoadedPlan::kDead if it is dead.
  bool has_ready() const { return ready_begin_ != ready_end_; }
  std::uint32_t oldest_ready() const { return ready_[ready_begin_]; }
  void pop_ready() { ++ready_begin_; }
  void push_ready(std::uint32_t entry) { ready_[ready_end_++] = entry; }
  // Makes room for all nodes of the plan once more. Called when nodes may become ready again:
  // before an iteration begins.
  void make_room();
  // Moves all entries to the end of `to`.
  void take_ready(std::vector<std::uint32_t>& to);
  // Puts so many entries in front of those that are ready.
  void put_back_ready(const std::uint32_t* entries, std::uint32_t n);

  // How many nodes have ended, for the step to know when all have. A frame's nodes count once,
  // whatever it repeats: its loops and calls correct the number.
  bool all_done() const { return nodes_done_ == nodes_.size(); }
  std::size_t nodes_done() const { return nodes_done_; }
  void count_done(std::size_t nodes) { nodes_done_ += nodes; }
  void count_undone(std::size_t nodes) { nodes_done_ -= nodes; }

  // Values.
  Slot& slot(std::uint32_t s) { return slots_[s]; }
  const Slot& slot(std::uint32_t s) const { return slots_[s]; }
  std::uint32_t slots() const { return std::uint32_t(slots_.size()); }
  // Readers of a slot that have not ended.
  std::uint32_t readers(std::uint32_t s) const { return readers_[s]; }
  // The slot of input `k` of a node.
  std::uint32_t input_slot(std::uint32_t node, std::uint32_t k) const {
    return input_slots_[nodes_[node].first_input + k];
  }
  // The value for a reader that keeps it: moved for the last one. The caller still releases it.
  Slot take(std::uint32_t s) { return readers_[s] == 1 ? std::move(slots_[s]) : slots_[s]; }
  // The same for a reader that is released with it.
  void take_to(Slot& to, std::uint32_t from);
  // One reader less; the last one lets go of the value.
  void release(std::uint32_t s) {
    if (--readers_[s] == 0) slots_[s].tensor = {};
  }
  void release_inputs(const LoadedPlan::Node& node);
  // Lets go of a scalar without a reader's release, and keeps its memory for the next ones.
  void spare(std::uint32_t s) {
    if (place_.spares) place_.spares->put(slots_[s].tensor);
  }
  // The value of a slot is on a branch not taken, until the frame begins anew.
  void mark_dead(std::uint32_t s) {
    slots_[s].dead = true;
    dead_slots_.push_back(s);
  }

  // What a kernel of this step is called with.
  KernelContext context(std::uint32_t node);
  KernelPlace& place() { return place_; }
  // What random numbers of a frame's nodes hang on: the run, and the iteration or call.
  std::uint64_t draw(std::uint32_t frame) const { return draws_[frame]; }
  void set_draw(std::uint32_t frame, std::uint64_t draw) { draws_[frame] = draw; }

  // Ends of nodes. finish_live is for a kernel of the fast path, which cannot be dead and has no
  // output without readers.
  void finish_live(const LoadedPlan::Node& node);
  void finish(std::uint32_t node, bool dead);
  // The same for a node whose inputs were released before.
  void complete(std::uint32_t node, bool dead);
  // For a node of which some outputs are dead and were marked: a successor is dead when it reads
  // one of those.
  void complete_with_dead_outputs(const LoadedPlan::Node& node);
  // A Merge has taken that input; edges that come later are looked at again.
  void set_taken(std::uint32_t merge, std::uint32_t input);

  // Nodes that wait for the outside. `want`: all before the node is done, and a node that is `dead`
  // ends dead. `arrive`: its outputs are in their slots; the node ends dead if they were marked so.
  void want(std::uint32_t node, bool dead);
  void arrive(std::uint32_t node);
  // `want` for a node whose inputs were released before, and whose outputs are not here.
  void mark_wanted(std::uint32_t node) { outside_[node] |= kWanted; }
  void mark_arrived(std::uint32_t node) { outside_[node] |= kArrived; }
  bool awaits(std::uint32_t node) const {
    return !outside_.empty() && (outside_[node] & (kWanted | kArrived)) == kWanted;
  }
  void mark_arriving_dead(std::uint32_t node) { outside_[node] |= kIsDead; }
  bool is_wanted(std::uint32_t node) const { return outside_[node] & kWanted; }
  bool has_arrived(std::uint32_t node) const { return outside_[node] & kArrived; }

  // A frame, with the frames inside. reset_frame: its nodes wait for everything, as at the start of
  // the step; no slot is dead. The words of save() bring counts, readers and flags back with
  // load().
  void reset_frame(const PlanFrame& frame);
  void forget_dead(const PlanFrame& frame);
  void save(const PlanFrame& frame, std::vector<std::uint32_t>& words) const;
  void load(const PlanFrame& frame, const std::uint32_t* words);

 private:
  // What a node that waits for the outside has got so far.
  enum Outside : std::uint8_t {
    kWanted = 1,   // everything before it is done
    kArrived = 2,  // its outputs are in their slots
    kRan = 4,      // a Merge that took an input
    kIsDead = 8,   // what arrives, or waits for it, is dead
  };

  void count_down(const LoadedPlan::Node& from, bool dead);
  void count_down_merge(const LoadedPlan::Node& from, LoadedPlan::Edge edge, bool dead);
  bool feeds_live(const LoadedPlan::Node& from, const LoadedPlan::Node& merge) const;

  const LoadedPlan& program_;
  // Of the program, for the hot loop.
  const std::span<const LoadedPlan::Node> nodes_;
  const LoadedPlan::Edge* const edges_;
  const std::uint32_t* const input_slots_;
  Failure& failure_;
  std::vector<std::uint32_t> counts_, readers_;
  std::vector<Slot> slots_;
  // A node enters once a step, or an iteration.
  std::vector<std::uint32_t> ready_;
  std::size_t ready_begin_ = 0, ready_end_ = 0;
  std::size_t nodes_done_ = 0;
  std::vector<std::uint8_t> outside_;      // Outside flags; empty where no node has any
  std::vector<std::uint32_t> dead_slots_;  // whose flag is set
  std::vector<std::uint64_t> draws_;       // by frame
  Spares spares_;
  KernelPlace place_;  // with spares where there are loops, unless the device is asynchronous
};

inline KernelContext Progress::context(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes_[i];
  return KernelContext({.slots = slots_.data(),
                        .input_slots = input_slots_ + node.first_input,
                        .readers = readers_.data(),
                        .outputs = slots_.data() + node.first_slot,
                        .inputs = node.inputs,
                        .n_outputs = node.outputs,
                        .place = &place_,
                        .random = {program_.random_key(i), draws_[node.frame]}});
}

[[gnu::always_inline]] inline void Progress::release_inputs(const LoadedPlan::Node& node) {
  // A node that joins many others reads slots all over the place: fetch them a few ahead.
  constexpr std::uint32_t kAhead = 8;
  const std::uint32_t* in = input_slots_ + node.first_input;
  for (std::uint32_t k = 0; k < node.inputs; ++k) {
    if (k + kAhead < node.inputs) {
      const char* slot = reinterpret_cast<const char*>(&slots_[in[k + kAhead]]);
      __builtin_prefetch(slot, 1);
      __builtin_prefetch(slot + sizeof(Tensor) - 1, 1);
    }
    if (--readers_[in[k]] != 0) continue;
    Tensor& value = slots_[in[k]].tensor;
    if (place_.spares)
      place_.spares->put(value);
    else
      (void)value.take_buffer();  // and lets go of it
  }
}

[[gnu::always_inline]] inline void Progress::finish_live(const LoadedPlan::Node& node) {
  release_inputs(node);
  const LoadedPlan::Edge* edge = edges_ + node.first_edge;
  for (const LoadedPlan::Edge* end = edge + node.edges; edge != end; ++edge) {
    if (*edge & LoadedPlan::kMerge) {
      count_down_merge(node, *edge, false);
      continue;
    }
    const std::uint32_t left = --counts_[*edge];
    if (is_due(left)) ready_[ready_end_++] = *edge | left;
  }
  ++nodes_done_;
}

}  // namespace troupe::burst
