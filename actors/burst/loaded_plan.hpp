// A plan with its kernels: what all steps of one partition share.
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

// Makes the kernel of one node (Role::kernel). Machines know no ops, so the caller brings it.
using MakeKernel = FunctionRef<Expected<std::unique_ptr<Kernel>>(const PlanInfo& node)>;

// A plan as the burst reads it: the part of a node that every run of it touches is 32 bytes,
// successors are one word each, the initial counts are one block that a step copies. Immutable
// once made; shared by all steps of the plan, which may overlap. The device outlives it.
class LoadedPlan {
 public:
  // A successor: the node's index and what makes counting it down special.
  using Edge = std::uint32_t;
  static constexpr Edge kControl = 1u << 31;  // only set together with kMerge
  static constexpr Edge kMerge = 1u << 30;    // the successor is a Merge
  static constexpr Edge kEdgeNode = kMerge - 1;

  // Counts. Of most nodes: edges still to come, and kDead once one came from a dead node. Of a
  // Merge: data edges in the low half, control edges above, kMergeWaits until a live input came or
  // all were dead; once it ran the upper half is 1 + the input it took.
  static constexpr std::uint32_t kDead = 1u << 31;
  static constexpr std::uint32_t kMergeControl = 1u << 16;
  static constexpr std::uint32_t kMergeWaits = 1u << 31;

  enum Flag : std::uint8_t {
    kOrdinary = 1,     // a kernel of a synchronous device with nothing below: the fast path
    kUnread = 2,       // has an output that nobody reads
    kConditional = 4,  // may be dead
    kFirstRead = 8,    // its value comes with the first request for reads
    kCheap = 16,       // PlanNode::cheap
    kPushes = 32,      // of a device with memory of its own: pushes a value there onto a list
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

  // Checks the plan (invalid_argument: an index out of range, an edge that goes back, an input that
  // no edge waits for, a frame that does not hang together; unimplemented: a loop that asks for
  // what is outside of the partition), makes the kernels (their errors name the node) and lays out
  // the flat form. Counts and readers follow from edges and inputs.
  static Expected<std::shared_ptr<const LoadedPlan>> make(std::shared_ptr<const Plan> plan,
                                                          Device& device, MakeKernel make_kernel);

  const Plan& plan() const { return *plan_; }
  Device& device() const { return *device_; }
  // Kernels issue work and return before it is done.
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
  // Has nodes that wait for the outside, or a Merge: what needs a flag of its own per step.
  bool has_external() const { return has_external_; }
  // Has frames beside the root.
  bool has_loops() const { return plan_->frames.size() > 1; }
  // The frame that a node of role loop repeats.
  std::uint32_t frame_of_loop(std::uint32_t node) const;
  // The frame that a node of role invoke calls.
  std::uint32_t frame_of_call(std::uint32_t node) const { return plan_->info[node].calls; }
  // It makes a list of a list and one value more.
  bool pushes(std::uint32_t node) const;
  // Of an asynchronous device: a kernel made what is in the slot, perhaps on a branch; not what was
  // read, received or is a variable of a loop.
  bool made_by_kernel(std::uint32_t slot) const { return made_by_kernel_[slot]; }
  // Of a function: its nodes, without those of the functions in its frame, which have calls of
  // their own.
  std::uint32_t nodes_of_call(std::uint32_t frame) const { return nodes_of_call_[frame]; }
  // The node is in such a frame, or in a loop in one.
  bool in_function(std::uint32_t node) const { return in_function_[nodes_[node].frame]; }
  // Behind the last frame that is in this one.
  std::uint32_t end_of_frames(std::uint32_t frame) const;
  // Next values are not this iteration's variables, so that each may move on before the others.
  bool moves_in_order(std::uint32_t frame) const { return in_order_[frame]; }
  // The node that a slot belongs to. Linear: for errors.
  std::uint32_t producer(std::uint32_t slot) const;
  // Reads that join the first request to their container, in plan order.
  const std::vector<std::uint32_t>& first_reads() const { return first_reads_; }

  // What an error of a node says about itself: "in node 'x' (MatMul) on /job:.../cpu:0", and its
  // site, added to `status`.
  Status explain(std::uint32_t node, const Status& status) const;

 private:
  LoadedPlan() = default;
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
