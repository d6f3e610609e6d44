// The progress of a step: what its nodes wait for, the values they made, and which are ready.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/burst/detail/failure.hpp"
#include "actors/burst/loaded_plan.hpp"
#include "devices/kernel.hpp"

namespace troupe::burst {

// Counts as LoadedPlan defines them. Whether no edge is left; `node | count` is then the node's
// entry in the list of ready nodes.
constexpr bool is_due(std::uint32_t count) { return (count & ~LoadedPlan::kDead) == 0; }
// For a Merge: the remaining data edges, with the control edges above them.
constexpr std::uint32_t kMergeDataEdges = LoadedPlan::kMergeControl - 1;
constexpr int kMergeTakenShift = 16;
// A Merge does not wait for data edges after its first live one.
constexpr bool is_merge_due(std::uint32_t count) { return count < LoadedPlan::kMergeControl; }
// The count of a Merge that took an input, with the input's number.
constexpr std::uint32_t with_taken(std::uint32_t merge_count, std::uint32_t input) {
  return (merge_count & kMergeDataEdges) | (input + 1) << kMergeTakenShift;
}
constexpr std::uint32_t input_taken(std::uint32_t merge_count) {
  return (merge_count >> kMergeTakenShift) - 1;
}
static_assert(LoadedPlan::kMergeControl == 1u << kMergeTakenShift);

// The counts, values and ready nodes of one step: what the hot loop touches.
//
// A node's count is the number of edges it waits for. When a node ends, its inputs lose a reader
// each and its successors an edge each; a successor without remaining edges joins the list of ready
// nodes. The last reader of a slot releases its value. A node that ends dead (on a branch that is
// not taken) makes its successors dead, except a Merge with a live input.
//
// The part of a frame (a loop's or a function's) can be reset, or saved and loaded again. A node
// whose outputs come from outside ends when it was reached (`want`) and its outputs are in their
// slots (`arrive`), in any order.
//
// Owned by the step; used by the burst in flight, or between bursts. The hot loop's methods are
// inline.
class Progress {
 public:
  // All arguments live as long as this.
  Progress(const LoadedPlan& program, const std::atomic<bool>& cancelled, Failure& failure);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Starts a new step, whose random numbers depend on `run`. REQUIRES: the last one was cleared.
  void reset(std::uint64_t run);
  // The step is over: releases all values. Unless it failed, only fetched ones are left.
  void clear(bool failed);

  // Ready nodes, oldest first; an entry is a node, with LoadedPlan::kDead if it is dead.
  bool has_ready() const { return ready_begin_ != ready_end_; }
  std::uint32_t oldest_ready() const { return ready_[ready_begin_]; }
  void pop_ready() { ++ready_begin_; }
  void push_ready(std::uint32_t entry) { ready_[ready_end_++] = entry; }
  // Makes room for all nodes of the plan once more. Called before nodes can become ready again.
  void make_room();
  // Moves all entries to the end of `to`.
  void take_ready(std::vector<std::uint32_t>& to);
  // Puts `n` entries in front of those that are ready.
  void put_back_ready(const std::uint32_t* entries, std::uint32_t n);

  // Counts the nodes that have ended. A frame's nodes count once, however often they run: loops and
  // calls correct the number.
  bool all_done() const { return nodes_done_ == nodes_.size(); }
  std::size_t nodes_done() const { return nodes_done_; }
  void count_done(std::size_t nodes) { nodes_done_ += nodes; }
  void count_undone(std::size_t nodes) { nodes_done_ -= nodes; }

  // Values.
  Slot& slot(std::uint32_t s) { return slots_[s]; }
  const Slot& slot(std::uint32_t s) const { return slots_[s]; }
  std::uint32_t slots() const { return std::uint32_t(slots_.size()); }
  // The readers of a slot that have not ended.
  std::uint32_t readers(std::uint32_t s) const { return readers_[s]; }
  // The slot of input `k` of a node.
  std::uint32_t input_slot(std::uint32_t node, std::uint32_t k) const {
    return input_slots_[nodes_[node].first_input + k];
  }
  // The value, moved for the last reader. The caller still releases it.
  Slot take(std::uint32_t s) { return readers_[s] == 1 ? std::move(slots_[s]) : slots_[s]; }
  // Takes the value and releases its reader.
  void take_to(Slot& to, std::uint32_t from);
  // Removes a reader; the last one releases the value.
  void release(std::uint32_t s) {
    if (--readers_[s] == 0) (void)slots_[s].tensor.take_buffer();
  }
  void release_inputs(const LoadedPlan::Node& node);
  // Releases a scalar, regardless of readers, and keeps its memory for the next ones.
  void spare(std::uint32_t s) {
    if (place_.spares) place_.spares->put(slots_[s].tensor);
  }
  // The value of a slot is on a branch that is not taken, until the frame is reset.
  void mark_dead(std::uint32_t s) {
    slots_[s].dead = true;
    dead_slots_.push_back(s);
  }

  // The arguments for a kernel of this step.
  KernelContext context(std::uint32_t node);
  KernelPlace& place() { return place_; }
  // The key of a frame's random numbers, made of the run and the iteration or call.
  std::uint64_t draw(std::uint32_t frame) const { return draws_[frame]; }
  void set_draw(std::uint32_t frame, std::uint64_t draw) { draws_[frame] = draw; }

  // Ends of nodes. finish_live is for a kernel of the fast path, which cannot be dead and has no
  // output without readers.
  void finish_live(const LoadedPlan::Node& node);
  void finish(std::uint32_t node, bool dead);
  // The same for a node whose inputs are already released.
  void complete(std::uint32_t node, bool dead);
  // For a node with some outputs marked dead: a successor is dead if it reads one of those.
  void complete_with_dead_outputs(const LoadedPlan::Node& node);
  // A Merge has taken that input; a second live one is an error.
  void set_taken(std::uint32_t merge, std::uint32_t input);

  // Nodes whose outputs come from outside. `want`: everything before the node is done; a `dead`
  // node ends dead. `arrive`: its outputs are in their slots; it ends dead if they were marked so.
  void want(std::uint32_t node, bool dead);
  void arrive(std::uint32_t node);
  // `want` for a node whose inputs are already released and whose outputs are not there yet.
  void mark_wanted(std::uint32_t node) { outside_[node] |= kWanted; }
  void mark_arrived(std::uint32_t node) { outside_[node] |= kArrived; }
  bool awaits(std::uint32_t node) const {
    return !outside_.empty() && (outside_[node] & (kWanted | kArrived)) == kWanted;
  }
  void mark_arriving_dead(std::uint32_t node) { outside_[node] |= kIsDead; }
  bool is_wanted(std::uint32_t node) const { return outside_[node] & kWanted; }
  bool has_arrived(std::uint32_t node) const { return outside_[node] & kArrived; }

  // A frame, including the frames inside. reset_frame: its nodes wait for all edges, as at the
  // start of the step; no slot is dead. save() stores counts, readers and flags; load() restores
  // them.
  void reset_frame(const PlanFrame& frame);
  void forget_dead(const PlanFrame& frame);
  void save(const PlanFrame& frame, std::vector<std::uint32_t>& words) const;
  void load(const PlanFrame& frame, const std::uint32_t* words);

 private:
  // The state of a node whose outputs come from outside.
  enum Outside : std::uint8_t {
    kWanted = 1,   // everything before it is done
    kArrived = 2,  // its outputs are in their slots
    kRan = 4,      // a Merge that took an input
    kIsDead = 8,   // what arrives, or the node itself, is dead
  };

  void count_down(const LoadedPlan::Node& from, bool dead);
  void count_down_merge(const LoadedPlan::Node& from, LoadedPlan::Edge edge, bool dead);
  bool feeds_live(const LoadedPlan::Node& from, const LoadedPlan::Node& merge) const;

  const LoadedPlan& program_;
  // The program's, for the hot loop.
  const std::span<const LoadedPlan::Node> nodes_;
  const LoadedPlan::Edge* const edges_;
  const std::uint32_t* const input_slots_;
  Failure& failure_;
  std::vector<std::uint32_t> counts_, readers_;
  std::vector<Slot> slots_;
  // A node is added once per step, or once per iteration.
  std::vector<std::uint32_t> ready_;
  std::size_t ready_begin_ = 0, ready_end_ = 0;
  std::size_t nodes_done_ = 0;
  std::vector<std::uint8_t> outside_;      // Outside flags; empty if no node has any
  std::vector<std::uint32_t> dead_slots_;  // slots marked dead
  std::vector<std::uint64_t> draws_;       // by frame
  Spares spares_;
  KernelPlace place_;  // has spares if there are loops and the device is synchronous
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
  // A node with many inputs reads scattered slots: prefetch them.
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
      (void)value.take_buffer();  // and releases it
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
