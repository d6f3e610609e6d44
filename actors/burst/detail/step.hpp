// The inside of StepState. One file per question: step_state.cpp starts and ends a step, loop.cpp
// runs nodes, frames.cpp repeats them and keeps values for loops that go back over them, turns.cpp
// receives what other parts of such a loop send in each iteration, calls.cpp runs functions that
// call themselves, requests.cpp talks to the executor, tickets.cpp knows what is not done yet
// although it was issued, holders.cpp who holds the memory of a step that wants too much.
#pragma once

#include <utility>
#include <vector>

#include "actors/burst/detail/call_stack.hpp"
#include "actors/burst/step_state.hpp"

namespace troupe {

// All functions but the pushes run in the one burst in flight, or between bursts.
struct StepState::State {
  // What a node that waits for the outside has got so far.
  enum Outside : std::uint8_t {
    kWanted = 1,   // everything before it is done
    kArrived = 2,  // its outputs are in their slots
    kRan = 4,      // a Merge that took an input
    kIsDead = 8,   // what arrives, or waits for it, is dead
  };
  struct OpenRequest {
    std::vector<std::uint32_t> nodes;
    bool open = false;
  };
  // A wait that was handed back, and who goes on after it.
  struct OpenWait {
    Ticket ticket;
    std::vector<std::uint32_t> nodes;
    bool open = false;
  };
  struct Issued {
    Ticket ticket;
    std::uint32_t node = 0;
    std::uint64_t before = 0;  // of the stream, by anybody, just before the node's; 0: all was well
    Ticket follows;            // of another stream, which is done when this is
  };
  // One stream as this step sees it.
  struct StreamView {
    std::uint32_t stream = 0;
    std::uint64_t last = 0;      // the last ticket the step got of it
    std::uint64_t complete = 0;  // known to be done
    std::uint64_t failed = 0;    // known to have failed at or before it; 0: not
    Status failure;
  };

  State(std::shared_ptr<const LoadedPlan> shared_program, const CallLimits& call_limits);

  // step_state.cpp
  Status start(StepInput step_input, StepOutbox& step_outbox);
  BurstResult run(Lanes& burst_lanes, TraceTrack* burst_trace, bool cheap);
  StepResult end();
  void collect_fetches(StepResult& out);
  void clear_slots();

  // loop.cpp
  bool loop(bool cheap);
  bool costly(std::uint32_t entry) const;
  void visit(std::uint32_t entry);
  void visit_role(std::uint32_t node, bool dead);
  void run_kernel(std::uint32_t node);
  void run_switch(std::uint32_t node);
  Expected<std::uint32_t> side_taken(const Tensor& selector, std::uint32_t outputs) const;
  void run_merge(std::uint32_t node);
  void run_send(std::uint32_t node, bool dead);
  void finish(std::uint32_t node, bool dead);
  void complete(std::uint32_t node, bool dead);
  void count_down(const LoadedPlan::Node& from, bool dead);
  void count_down_merge(const LoadedPlan::Node& from, LoadedPlan::Edge edge, bool dead);
  void count_down_switch(const LoadedPlan::Node& from);
  bool feeds_live(const LoadedPlan::Node& from, const LoadedPlan::Node& merge) const;
  Slot take(std::uint32_t slot);
  void release_inputs(const LoadedPlan::Node& node);
  void fail(std::uint32_t node, const Status& failure);
  bool failing() const { return limit < nodes.size(); }
  KernelContext context(std::uint32_t node);

  // turns.cpp
  Tag tag_of(std::uint32_t send) const;
  std::int64_t turn_of(std::uint32_t recv) const;
  void keep_for_its_turn(std::uint32_t recv, TensorArrival& arrival);
  void want_in_turn(std::uint32_t recv);
  void receive(std::uint32_t recv, TensorArrival& arrival);

  // frames.cpp
  void run_loop(std::uint32_t node, bool dead);
  void run_next(std::uint32_t node, bool dead);
  void run_condition(std::uint32_t node);
  void run_keep(std::uint32_t node);
  Expected<Slot> value_to_keep(std::uint32_t keep);
  void run_kept(std::uint32_t node);
  bool truth(std::uint32_t node, std::uint32_t slot, bool& value);
  void take_to(std::uint32_t to, std::uint32_t from);
  void move_on(std::uint32_t frame, std::uint32_t to);
  void begin_iteration(std::uint32_t frame);
  void reset_frame(const PlanFrame& frame);
  void forget_dead(const PlanFrame& frame);
  void make_room();
  void forget_waits();
  bool has_had_its_turn(const PlanFrame& frame);
  Status in_iterations(std::uint32_t node, Status status) const;

  // calls.cpp
  void run_invoke(std::uint32_t node, bool dead);
  void run_return(std::uint32_t node, bool dead);
  void carry_inputs(const LoadedPlan::Node& node);
  Status room_for_call(const PlanFrame& frame) const;
  void put_aside(std::uint32_t node, std::uint32_t frame);
  void put_frame_aside(const PlanFrame& frame);
  void take_up(const PlanFrame& frame);
  void take_frame_up(const PlanFrame& frame, const CallStack::Call& call);
  void leave_calls();
  void forget_waits_at_times();

  // holders.cpp
  void count_memory();
  Status over_limit(const Status& failure);
  std::string holders(const StepAllocator& allocator) const;
  std::uint32_t saved_in(std::uint32_t list_slot) const;
  std::string maker_of(std::uint32_t slot) const;

  // requests.cpp
  void drain();
  void handle(TensorArrival& arrival);
  void handle(RequestAnswer& answer);
  void handle(WaitAnswer& answer);
  void handle(AbortStep& order);
  void request_first_reads();
  void request(std::uint32_t node);
  StepRequest& request_of(std::uint32_t node);
  Tag iterations_of(std::uint32_t frame) const;
  void forget_requests();
  Status take_outputs(std::uint32_t node, std::vector<Tensor>& outputs, std::size_t& next);
  void want(std::uint32_t node, bool dead);
  void arrived(std::uint32_t node);

  // tickets.cpp
  bool done(const Ticket& ticket);
  StreamView& view(std::uint32_t stream);
  std::uint32_t input_slot(std::uint32_t node, std::uint32_t k) const;
  void issue_kernel(std::uint32_t node);
  bool park_for_memory(std::uint32_t node, const Status& failure);
  bool leaves_device(std::uint32_t slot) const;
  Expected<Slot> copy_on_host(std::uint32_t node, const Tensor& value);
  void issue_push(std::uint32_t node);
  Ticket ticket_of_outputs(const LoadedPlan::Node& node, Ticket before);
  bool park_unless_done(std::uint32_t node, std::uint16_t first_input, bool host_only);
  void issue_copy(std::uint32_t node);
  void issue_list(std::uint32_t node);
  Expected<Tensor> list_on_host(std::uint32_t node, const Tensor& list, Ticket& last);
  Expected<Tensor> adopt_elements(Tensor tensor);
  Allocator& memory_in(MemorySpace space);
  Ticket copy(std::uint32_t node, const Tensor& from, const Tensor& to);
  Status place(std::uint32_t node, std::uint32_t slot, Tensor tensor);
  void issued_at(std::uint32_t node, Ticket ticket, std::uint64_t before, Ticket follows = {});
  void wait_for(Ticket ticket, std::uint32_t node);
  bool device_idle();
  void find_failure(StreamView& stream, const Status& failure);
  void fail_with_stream(const StreamView& stream);

  const std::shared_ptr<const LoadedPlan> program;
  const std::vector<LoadedPlan::Node>& nodes;
  Device& device;

  Inbox inbox;
  std::atomic<bool> cancelled{false};

  StepInput input;
  StepOutbox* outbox = nullptr;
  std::vector<std::uint32_t> counts, readers;
  std::vector<Slot> slots;
  // Node | LoadedPlan::kDead; a node enters once a step, or an iteration.
  std::vector<std::uint32_t> ready;
  std::size_t ready_begin = 0, ready_end = 0;
  std::size_t nodes_done = 0;
  std::uint32_t limit = 0;  // nodes from here on do not run: the smallest that failed; 0: aborted
  Status status;
  std::uint32_t failed_node = kNoNode;
  bool aborted = false;
  bool started = false, over = true;
  std::vector<std::uint8_t> external;     // Outside flags
  std::vector<std::uint32_t> dead_slots;  // whose flag is set

  std::uint32_t first_request = 0, first_wait = 0;  // ids below are of earlier steps
  std::vector<OpenRequest> requests;
  std::vector<OpenWait> waits;
  std::vector<std::uint32_t> keys;
  // By frame: what its random numbers hang on (of frame 0 the run), and the iteration.
  std::vector<std::uint64_t> draws;
  std::vector<std::int64_t> iterations;
  std::vector<std::int64_t> turns;   // how many this step has begun, of each frame
  std::vector<TensorArrival> early;  // for turns to come
  std::vector<Slot> carried;         // from one iteration to the next, into a call and out of it
  CallStack call_stack;
  const CallLimits limits;
  Spares spares;
  KernelPlace kernel_place;  // with spares where there are loops, unless the device is asynchronous
  StepAllocatorPtr memory, host_memory;  // that a limit holds for; else null. A CPU has one
  std::size_t forget_at = 64;            // waits and issued work that a call looks through
  std::vector<Issued> issued;            // asynchronous devices: in order of issue
  std::vector<StreamView> streams;

  // Of the burst in flight.
  TraceTrack* trace = nullptr;
  BurstResult* burst = nullptr;
  bool yields = false;              // the burst has had its turn
  std::uint32_t nodes_in_turn = 0;  // of loops, since the clock was looked at
  std::int64_t turn_began_ns = 0;
};

// Inline: the hot loop makes one for every node.
inline KernelContext StepState::State::context(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  return KernelContext({.slots = slots.data(),
                        .input_slots = program->input_slots().data() + node.first_input,
                        .readers = readers.data(),
                        .outputs = slots.data() + node.first_slot,
                        .inputs = node.inputs,
                        .n_outputs = node.outputs,
                        .place = &kernel_place,
                        .random = {program->random_key(i), draws[node.frame]}});
}

}  // namespace troupe
