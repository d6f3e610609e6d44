// One step of one partition, run in bursts: each runs everything that can run without waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/burst/inbox.hpp"
#include "actors/burst/loaded_plan.hpp"
#include "actors/burst/step_memory.hpp"
#include "core/trace.hpp"
#include "core/transaction.hpp"
#include "devices/lanes.hpp"

namespace troupe {

// The run's part of the random counter, a hash of (R+1, k). Iterations of loops are mixed in later.
std::uint64_t run_hash(CommitNumber snapshot, std::uint64_t k);

// The input of one step.
struct StepInput {
  std::uint64_t run = 0;        // run_hash(R, k)
  std::uint64_t trace_run = 0;  // names the run in timelines
  // Where an asynchronous device records when it did the step's work; null: nowhere.
  std::shared_ptr<Trace> trace = nullptr;
  std::vector<Tensor> feeds;  // one per Plan::feeds, in that order; in the slot's memory space
  // The step's memory account in this process, over all its partitions; null: no limit. A step
  // above the limit is resource_exhausted, and its status names the largest holders in this
  // partition.
  std::shared_ptr<StepMemory> memory = nullptr;
};

// Takes the tensors that leave the partition. Called within the burst, on its lane, as soon as the
// tensor is done; must not block.
class StepOutbox {
 public:
  virtual ~StepOutbox() = default;
  // `dead`: the branch that makes the tensor was not taken; then, and for a control edge, it is an
  // empty u8[0].
  virtual void send(ChannelId channel, const Tag& tag, Tensor tensor, bool dead) = 0;
};

// One node of a request.
struct RequestItem {
  std::uint32_t node = 0;        // index in the plan; its PlanInfo has resource, handles, replica
  Tag tag;                       // iterations of the loops around it
  std::vector<Tensor> operands;  // its data inputs, complete; none for a read
  std::uint32_t outputs = 0;     // tensors that the answer must hold for it
};

// Work for a resource, which a burst cannot do itself. Answered exactly once with
// StepState::answer(id, ...), the outputs of all items in order; ignored if the step has failed.
//
// One item, unless the verb has an order (External): reads of one op, container and epoch that are
// ready in one burst are one request (in epochs after 0, which sees the snapshot, also of one
// replica), and so are writes of one container.
struct StepRequest {
  std::uint32_t id = 0;
  const External* external = nullptr;  // of the first item
  std::uint32_t resource = 0;          // the first item's; its container holds for all
  std::uint32_t epoch = 0;
  std::vector<RequestItem> items;
};

// Device work that the step waits for: the caller calls device.on_complete(ticket, ...) and passes
// the status to StepState::waited(id, ...).
struct StepWait {
  std::uint32_t id = 0;
  Ticket ticket;
};

// What a burst hands back.
struct BurstResult {
  std::vector<StepRequest> requests;  // in the order in which their first nodes became ready
  std::vector<StepWait> waits;
  // The step is over: every node ran, or the step failed, and no device work is left. Call
  // StepState::result() then; no more answers are needed.
  bool finished = false;
  // Nodes are ready: call run. After run_cheap, or a burst that gave up its lane.
  bool more = false;
};

// How a step ended.
struct StepResult {
  Status status;                    // of several failures, the one with the smallest plan index
  std::vector<Fetched> fetches;     // empty unless ok
  std::vector<std::uint32_t> keys;  // per Plan::resources: writes and queue operations answered ok
  // Requests of a failed step that have no answer yet.
  std::vector<std::uint32_t> unanswered;
};

// Limits for recursive functions: the depth of calls, and the memory of waiting calls, including
// the tensors that they hold and those kept for gradients. A step above one is resource_exhausted.
struct CallLimits {
  std::size_t calls = 100'000;
  std::uint64_t bytes = std::uint64_t{2} << 30;
};

// One step of one partition.
//
// Owned by the partition's executor and lent to one burst at a time: start, run and result are
// called one at a time, and only while no burst is in flight. Until it is finished, any thread may
// call deliver, answer, waited and abort, which only push to the inbox; the burst polls it between
// nodes. After a burst the executor checks has_arrivals() before it waits: a step with arrivals
// needs another burst.
//
//     start -> run -> (requests, waits) ... arrivals ... -> run -> ... -> finished -> result
//                                                                             |-> start again
//
// Reusable: a finished step starts again with a few array copies, so executors keep a pool. The hot
// loop itself (taking a ready node and calling its kernel) does not allocate, lock or hash.
class StepState {
 public:
  explicit StepState(std::shared_ptr<const LoadedPlan> program, const CallLimits& limits = {});
  ~StepState();
  StepState(const StepState&) = delete;
  StepState& operator=(const StepState&) = delete;

  const LoadedPlan& program() const;

  // REQUIRES: new, or finished. The outbox lives until the step is finished.
  // invalid_argument if the number of feeds is not the plan's.
  Status start(StepInput input, StepOutbox& outbox);
  // Runs all ready nodes, and those that become ready, until there are none or a loop has used up
  // its turn on the lane (BurstResult::more). Records the burst and its nodes in `trace`.
  BurstResult run(Lanes& lanes, TraceTrack* trace = nullptr);
  // The same for a thread that must not be blocked for long: stops before the first node that is
  // not cheap, and after kCheapNodes.
  BurstResult run_cheap(Lanes& lanes, TraceTrack* trace = nullptr);
  static constexpr std::size_t kCheapNodes = 256;
  // REQUIRES: the last burst was finished. Called once per step.
  StepResult result();

  // From any thread, between start and finished.
  void deliver(ChannelId channel, const Tag& tag, Tensor tensor, bool dead = false);
  void answer(std::uint32_t request, Expected<std::vector<Tensor>> outputs);
  void waited(std::uint32_t wait, Status status);
  // Ends the step with `status` unless a node of it failed first. Kernels in flight see
  // KernelContext::cancelled().
  void abort(Status status);
  bool has_arrivals() const;

  // The last node of the burst in flight that is not cheap. None between bursts, and before a burst
  // has its lane. Any thread, one at a time.
  struct Running {
    std::uint32_t node = 0;
    // A coarse_now_ns() not after the node began: when the burst began, or the last look that saw
    // another node.
    std::int64_t since_ns = 0;
  };
  std::optional<Running> look();
  // The _Recv nodes whose tensor has not arrived. REQUIRES: no burst is in flight.
  std::vector<std::uint32_t> awaited() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
