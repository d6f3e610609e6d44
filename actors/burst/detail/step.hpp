// The implementation of StepState: the hot loop and the state machines around it.
#pragma once

#include <atomic>
#include <memory>

#include "actors/burst/detail/calls.hpp"
#include "actors/burst/detail/channels.hpp"
#include "actors/burst/detail/device_work.hpp"
#include "actors/burst/detail/failure.hpp"
#include "actors/burst/detail/holders.hpp"
#include "actors/burst/detail/iterations.hpp"
#include "actors/burst/detail/kept_values.hpp"
#include "actors/burst/detail/lane_turn.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/detail/requests.hpp"
#include "actors/burst/detail/switches.hpp"
#include "actors/burst/detail/tickets.hpp"
#include "actors/burst/step_state.hpp"
#include "core/coarse_clock.hpp"

namespace troupe {

// One step, as StepState describes it. Everything except the pushes to the inbox is called by the
// burst in flight, or between bursts.
//
//     loop ----> Progress   counts, values, ready nodes
//       |           ^
//       visit ----> Switches, Iterations, Calls, KeptValues    nodes that are not kernels
//       |           Channels, Requests                     what enters or leaves the partition
//       |           DeviceWork ----> Tickets, Holders      asynchronous devices; memory
//       `---------> Failure
//
// Each of these owns one part of the state and uses those below it.
struct StepState::State {
  State(std::shared_ptr<const LoadedPlan> shared_program, const CallLimits& call_limits);

  // step_state.cpp
  Status start(StepInput step_input, StepOutbox& step_outbox);
  BurstResult run(Lanes& burst_lanes, TraceTrack* burst_trace, bool cheap);
  StepResult end();
  void place_feeds();
  void collect_fetches(StepResult& out);
  Status explain(std::uint32_t node, const Status& why);
  void drain();
  void handle(TensorArrival& arrival) { channels.arrived(arrival); }
  void handle(RequestAnswer& answer) { requests.answered(answer); }
  void handle(WaitAnswer& answer);
  void handle(AbortStep& order) { failure.abort(order.status); }

  // loop.cpp
  bool loop(bool cheap);
  bool costly(std::uint32_t entry) const;
  void visit(std::uint32_t entry);
  void visit_role(std::uint32_t node, bool dead);
  void run_kernel(std::uint32_t node);
  void run_placeholder(std::uint32_t node);

  const std::shared_ptr<const LoadedPlan> program;
  const std::vector<LoadedPlan::Node>& nodes;

  Inbox inbox;
  std::atomic<bool> cancelled{false};

  StepInput input;
  bool started = false, over = true;

  // For StepState::look: the node of the burst in flight, if it is not cheap, or kNoNode; and when
  // the burst began. The hot loop does not read the clock.
  std::atomic<std::uint32_t> at_node{kNoNode};
  std::atomic<std::int64_t> burst_since{0};
  void note_at(std::uint32_t node) { at_node.store(node, std::memory_order_relaxed); }
  // The last look: what it saw, when that was, and since when the node may be running.
  std::uint32_t looked_node = kNoNode;
  std::int64_t looked_burst = 0, looked_since = 0, looked_at = 0;

  // Of the burst in flight.
  TraceTrack* trace = nullptr;
  burst::LaneTurn turn;

  burst::Failure failure;
  burst::Progress progress;
  burst::CallStack call_stack;
  burst::Holders memory;
  burst::Tickets tickets;
  burst::DeviceWork work;
  burst::Switches switches;
  burst::Channels channels;
  burst::Iterations iterations;
  burst::Calls calls;
  burst::KeptValues kept_values;
  burst::Requests requests;
};

}  // namespace troupe
