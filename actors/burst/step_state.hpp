// The burst: one step of one partition, as far as it gets without waiting.
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

// The run's part of the random counter: hash of (R+1, k); iterations of loops are mixed in later.
std::uint64_t run_hash(CommitNumber snapshot, std::uint64_t k);

// What one step is started with.
struct StepInput {
  std::uint64_t run = 0;        // run_hash(R, k)
  std::uint64_t trace_run = 0;  // names the run in timelines
  std::vector<Tensor> feeds;    // one per Plan::feeds, in that order; in the slot's memory space
  // What the step may hold in this process, over all its partitions; null: as much as there is. A
  // step that wants more is resource_exhausted, and its status names the largest holders here.
  std::shared_ptr<StepMemory> memory = nullptr;
};

// Takes the tensors that leave the partition. Called inside the burst, on its lane, the moment the
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

// What a burst cannot do itself. Answered exactly once with StepState::answer(id, ...), the outputs
// of all items in order. An answer may come after the step failed; it is then dropped.
//
// One item, unless the verb has an order (External): reads of one op, container and epoch are one
// request (after epoch 0, which sees the snapshot, of one replica too), and so are writes of one
// container that became ready in one burst.
struct StepRequest {
  std::uint32_t id = 0;
  const External* external = nullptr;  // of the first item
  std::uint32_t resource = 0;          // the first item's; its container holds for all
  std::uint32_t epoch = 0;
  std::vector<RequestItem> items;
};

// Work of the device that somebody waits for: the caller asks device.on_complete(ticket, ...) and
// hands its status to StepState::waited(id, ...).
struct StepWait {
  std::uint32_t id = 0;
  Ticket ticket;
};

// What a burst hands back.
struct BurstResult {
  std::vector<StepRequest> requests;  // in the order of their first node's becoming ready
  std::vector<StepWait> waits;
  // The step is over: every node ran, or the step failed; and no device work is left. Take
  // StepState::result() then; no answer is needed any more.
  bool finished = false;
  // After run_cheap: nodes are ready, and wait for run.
  bool more = false;
};

// How a step ended.
struct StepResult {
  Status status;                    // of several failures the one with the smallest plan index
  std::vector<Fetched> fetches;     // empty unless ok
  std::vector<std::uint32_t> keys;  // per Plan::resources: writes and queue operations answered ok
  // Requests of a failed step that have no answer yet.
  std::vector<std::uint32_t> unanswered;
};

// Of functions that call themselves: how deep calls go, and how much memory what waits for inner
// calls takes, with the tensors that it holds and that gradients need of calls. Beyond that a step
// is resource_exhausted.
struct CallLimits {
  std::size_t calls = 100'000;
  std::uint64_t bytes = std::uint64_t{2} << 30;
};

// One step of one partition.
//
// Owned by the partition's executor and lent to one burst at a time: start, run and result are
// never called at once, and only while no burst is in flight. Meanwhile any thread may call
// deliver, answer, waited and abort, which only push to the inbox; the burst polls it between
// nodes. After a burst the executor looks at has_arrivals() before it waits: a step with arrivals
// wants another burst.
//
//     start -> run -> (requests, waits) ... arrivals ... -> run -> ... -> finished -> result
//                                                                             |-> start again
//
// Reusable: a finished step starts anew with two memcpy's, so that executors keep a pool. In the
// hot loop (a ready node whose kernel runs) nothing allocates, locks or hashes.
class StepState {
 public:
  explicit StepState(std::shared_ptr<const LoadedPlan> program, const CallLimits& limits = {});
  ~StepState();
  StepState(const StepState&) = delete;
  StepState& operator=(const StepState&) = delete;

  const LoadedPlan& program() const;

  // REQUIRES: new, or finished. The outbox lives until the step is finished.
  // invalid_argument when the feeds do not fit the plan.
  Status start(StepInput input, StepOutbox& outbox);
  // Runs everything that is ready and whatever becomes ready, until nothing is.
  // `trace`: records the burst and its nodes there.
  BurstResult run(Lanes& lanes, TraceTrack* trace = nullptr);
  // The same for a thread that must not be kept long: stops before the first node that is not
  // cheap, and after kCheapNodes.
  BurstResult run_cheap(Lanes& lanes, TraceTrack* trace = nullptr);
  static constexpr std::size_t kCheapNodes = 256;
  // REQUIRES: the last burst said finished. Called once per step.
  StepResult result();

  // From any thread, between start and finished.
  void deliver(ChannelId channel, const Tag& tag, Tensor tensor, bool dead = false);
  void answer(std::uint32_t request, Expected<std::vector<Tensor>> outputs);
  void waited(std::uint32_t wait, Status status);
  // Ends the step with `status` unless a node of it failed first. Kernels in flight see
  // KernelContext::cancelled().
  void abort(Status status);
  bool has_arrivals() const;

  // The node that the burst in flight is at, or was at before cheap ones. None between bursts, and
  // before one has its lane. Any thread, one at a time.
  struct Running {
    std::uint32_t node = 0;
    // coarse_now_ns(), not after it began: when the burst did, or at the last look that saw another
    // node.
    std::int64_t since_ns = 0;
  };
  std::optional<Running> look();
  // The _Recv nodes whose tensor is not here. REQUIRES: no burst is in flight.
  std::vector<std::uint32_t> awaited() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
