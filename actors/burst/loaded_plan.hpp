// A plan with its kernels, shared by all steps of one partition.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/function_ref.hpp"
#include "core/status.hpp"
#include "devices/kernel.hpp"
#include "graph/plan.hpp"

namespace troupe {

// Makes the kernel of one node (Role::kernel). The burst knows no ops, so the caller passes it in.
using MakeKernel = FunctionRef<Expected<std::unique_ptr<Kernel>>(const PlanInfo& node)>;

// A plan in the layout that the burst reads: 32 bytes of each node that every run touches, one word
// for each successor, and the initial counts in one block that a step copies. Immutable; shared by
// all steps of the plan, which may overlap. The device outlives it.
class LoadedPlan {
 public:
  // A successor: the node's index, and flags for a Merge, which is counted down differently.
  using Edge = std::uint32_t;
  static constexpr Edge kControl = 1u << 31;  // only set together with kMerge
  static constexpr Edge kMerge = 1u << 30;    // the successor is a Merge
  static constexpr Edge kEdgeNode = kMerge - 1;

  // Counts. Most nodes: the remaining edges, and kDead once one came from a dead node. A Merge:
  // data edges in the low half, control edges above, kMergeWaits until a live input came or all
  // were dead; after it ran, the upper half is 1 + the input it took.
  static constexpr std::uint32_t kDead = 1u << 31;
  static constexpr std::uint32_t kMergeControl = 1u << 16;
  static constexpr std::uint32_t kMergeWaits = 1u << 31;

  enum Flag : std::uint8_t {
    kOrdinary = 1,     // a kernel of a synchronous device, without kUnread: the fast path
    kUnread = 2,       // has an output without readers
    kConditional = 4,  // may be dead
    kFirstRead = 8,    // its value is read when the step begins
    kCheap = 16,       // PlanNode::cheap
    kPushes = 32,      // on an asynchronous device: pushes a value in its memory onto a list
  };
  struct Node {
    Kernel* kernel = nullptr;
    std::uint32_t first_input = 0;
    std::uint32_t first_slot = 0;
    std::uint32_t first_edge = 0;
    std::uint32_t edges = 0;
    std::uint16_t inputs = 0;
    std::uint16_t outputs = 0;
    Role role = Role::kernel;
    std::uint8_t flags = 0;
    std::uint16_t frame = 0;
  };

  // Checks the plan (check_plan), makes the kernels (their errors name the node), prepares the
  // device for them, and builds the flat layout. Counts and readers follow from edges and inputs.
  static Expected<std::shared_ptr<const LoadedPlan>> make(std::shared_ptr<const Plan> plan,
                                                          Device& device, MakeKernel make_kernel);

  const Plan& plan() const { return *plan_; }
  Device& device() const { return *device_; }
  // Whether kernels issue work and return before it is done.
  bool asynchronous() const { return asynchronous_; }

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Edge>& edges() const { return edges_; }
  const std::vector<std::uint32_t>& input_slots() const { return plan_->input_slots; }
  const std::vector<std::uint32_t>& counts() const { return counts_; }    // initial, per node
  const std::vector<std::uint32_t>& readers() const { return readers_; }  // initial, per slot
  const std::vector<std::uint32_t>& roots() const { return roots_; }      // ready at the start
  std::uint64_t random_key(std::uint32_t node) const { return random_keys_[node]; }
  std::uint32_t lag(std::uint32_t recv) const { return plan_->info[recv].lag; }
  // The Recv of a channel, or kNoNode.
  std::uint32_t recv(ChannelId channel) const;
  // Whether there are nodes other than kernels: these need flags in each step.
  bool has_external() const { return has_external_; }
  // Whether there are frames besides the root.
  bool has_loops() const { return plan_->frames.size() > 1; }
  // The frame that a node of role loop repeats.
  std::uint32_t frame_of_loop(std::uint32_t node) const;
  // The frame that a node of role invoke calls.
  std::uint32_t frame_of_call(std::uint32_t node) const { return plan_->info[node].calls; }
  // Whether the node appends a value to a list.
  bool pushes(std::uint32_t node) const;
  // On an asynchronous device: whether a kernel made the slot's value, perhaps on a branch. False
  // for values that were read or received, and for loop variables.
  bool made_by_kernel(std::uint32_t slot) const { return made_by_kernel_[slot]; }
  // The number of a function's nodes, without those of other functions in its frame, which have
  // calls of their own.
  std::uint32_t nodes_of_call(std::uint32_t frame) const { return nodes_of_call_[frame]; }
  // Whether the node is in a function's frame, or in a loop in one.
  bool in_function(std::uint32_t node) const { return in_function_[nodes_[node].frame]; }
  // One past the last frame inside this one.
  std::uint32_t end_of_frames(std::uint32_t frame) const;
  // Whether no next value is another variable of this iteration, so that variables can be replaced
  // one after the other.
  bool moves_in_order(std::uint32_t frame) const { return in_order_[frame]; }
  // The node that a slot belongs to. Takes linear time: for errors only.
  std::uint32_t producer(std::uint32_t slot) const;
  // The reads that are requested when a step begins, in plan order.
  const std::vector<std::uint32_t>& first_reads() const { return first_reads_; }

  // `status` with "in node 'x' (MatMul) on /job:.../cpu:0" and the node's site added.
  Status explain(std::uint32_t node, const Status& status) const;

 private:
  LoadedPlan() = default;
  Status prepare() const;
  void lay_out();
  void lay_out(std::uint32_t node);
  bool reads_a_feed(const PlanNode& node) const;
  void mark_conditional();
  void lay_out_frames();

  std::shared_ptr<const Plan> plan_;
  Device* device_ = nullptr;
  bool asynchronous_ = false;
  bool has_external_ = false;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::uint64_t> random_keys_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> counts_, readers_, roots_, first_reads_;
  std::vector<bool> made_by_kernel_;                        // per slot
  std::vector<bool> in_order_;                              // per frame
  std::vector<std::uint32_t> nodes_of_call_;                // per frame
  std::vector<bool> in_function_;                           // per frame
  std::vector<std::pair<ChannelId, std::uint32_t>> recvs_;  // ascending
};

}  // namespace troupe
