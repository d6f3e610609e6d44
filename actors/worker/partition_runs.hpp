// The attempts at one partition of a compiled step: the decisions of an executor. No actors in
// here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/burst/step_memories.hpp"
#include "actors/burst/step_state.hpp"
#include "actors/resources/request.hpp"
#include "actors/resources/variable_store.hpp"
#include "actors/worker/dataset_reads.hpp"
#include "core/transaction.hpp"
#include "serialization/messages/task_waits.hpp"

namespace troupe {

// A resource of the plan, for commits and conflicts.
struct PartitionResource {
  ResourceId id;
  std::string name;       // of the variable, inside its container
  std::uint64_t key = 0;  // names the variable or queue for conflicts (Uses)
  bool outside = false;   // ResourceWrites::outside
};

// The properties of a write node.
struct WriteInfo {
  std::shared_ptr<const UpdateRule> rule;
  std::uint32_t key = 0;  // WriteKey::node: equal for the copies made for replicas
  std::uint32_t replica = 0;
};

// The data shared by all attempts at a partition. Immutable.
struct PartitionSetup {
  std::uint32_t partition = 0;
  std::shared_ptr<const LoadedPlan> program;
  std::vector<PartitionResource> resources;  // parallel to Plan::resources
  std::vector<DatasetRead> datasets;
  std::unordered_map<std::uint32_t, WriteInfo> writes;  // by plan node
  // WriteKey::node of the copies made for replicas of a node that asks a resource, by plan node; of
  // others, and of the first copy, it is the plan node.
  std::unordered_map<std::uint32_t, std::uint32_t> copies;
  // For reads ordered after writes of their own run: the keys of those writes, by plan node.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> after;
  std::shared_ptr<Trace> trace;  // null: nothing is recorded
  // The memory accounts of this process's steps; null: no limit.
  std::shared_ptr<StepMemories> memories;
  // The channels from other partitions, to report what a run waits for.
  struct Inbound {
    std::string name;        // "node:port"
    std::uint32_t from = 0;  // partition
  };
  std::unordered_map<ChannelId, Inbound> inbound;
};

// The state machine between the coordinator, the bursts of a partition and its resources. It
// decides what to request from resources, when a granted number may be used, when an attempt is
// over, and what is reported.
//
// Owned by the partition's executor, or by a simulation. Inputs append what must be done to `out`;
// it runs only cheap nodes itself, on the caller's thread. Messages to it may come early (a tensor
// before its START), twice, or late (for an attempt that is over). Requests to resources and their
// answers stay in the process: they are neither lost nor duplicated.
class PartitionRuns {
 public:
  // START of an attempt.
  struct Start {
    AttemptInfo attempt;
    std::uint64_t random_index = 0;
    CommitNumber grant = 0;
    std::vector<Tensor> feeds;
    std::vector<std::vector<std::uint64_t>> elements;  // parallel to PartitionSetup::datasets
  };
  struct Arrival {
    ChannelId channel = 0;
    Tag tag;
    Tensor tensor;
    bool dead = false;
  };

  // To the resource of that index in Plan::resources. Answered with answered().
  struct Ask {
    std::uint32_t resource = 0;
    ResourceRequest request;
  };
  // Call step->run(lanes) on a lane, then burst_done(). Both pointers live until then.
  struct Burst {
    AttemptId attempt;
    RunId run;
    std::shared_ptr<StepState> step;
    std::shared_ptr<StepOutbox> outbox;
  };
  // Call waited() when the device reports that the ticket is complete.
  struct Await {
    AttemptId attempt;
    StepWait wait;
  };
  // PartitionDone and GrantReturned go to the coordinator.
  using Output = std::variant<Ask, Burst, Await, PartitionDone, GrantReturned>;
  using Outputs = std::vector<Output>;

  // Makes the outbox for an attempt's tensors that leave the partition.
  using MakeOutbox = std::function<std::shared_ptr<StepOutbox>(const AttemptId&)>;
  PartitionRuns(PartitionSetup setup, MakeOutbox make_outbox);

  const PartitionSetup& setup() const { return setup_; }

  void start(Start start, Outputs& out);
  // See Coordinator::AbortAttempt.
  void abort(const AttemptId& attempt, const RunId& run, Status cause, Outputs& out);
  // Another run needs the granted number: answers GrantReturned unless the number is used already.
  void revoke(const AttemptId& attempt, const RunId& run, Outputs& out);
  void arrived(const AttemptId& attempt, Arrival arrival, Outputs& out);
  void burst_done(const AttemptId& attempt, BurstResult result, Outputs& out);
  void waited(const AttemptId& attempt, std::uint32_t wait, Status status, Outputs& out);
  void answered(ResourceAnswer answer, Outputs& out);
  // Forgets attempts that are over.
  void live(const LiveList& list);

  struct Tables {
    std::size_t attempts = 0, early = 0;  // includes ended attempts until a LiveList covers them
    bool empty() const { return attempts + early == 0; }
  };
  Tables tables() const { return {attempts_.size() + ended_.size(), early_.size()}; }

  // Adds what attempts wait for here: at least one entry for each attempt.
  void waits(std::vector<NodeWait>& out) const;

  // The timeline's row for attempts at this partition and their waits; null while not recording.
  TraceTrack* line() const { return active(setup_.trace) ? line_ : nullptr; }

 private:
  // One attempt, from START until PartitionDone.
  struct Attempt {
    AttemptInfo info;
    CommitNumber grant = 0;
    std::vector<std::vector<std::uint64_t>> elements;
    std::vector<std::uint64_t> used;  // number of elements used, by dataset
    std::shared_ptr<StepState> step;
    std::shared_ptr<StepOutbox> outbox;
    bool bursting = false;
    // Unanswered requests by id. Writes in `held` wait for the rest of the step (fast path).
    struct Asked {
      std::uint32_t resource = 0, node = 0;  // the first of its nodes
      std::uint64_t position = 0;            // in a dataset
      std::int64_t since_ns = 0;
    };
    std::map<std::uint32_t, Asked> asked;
    std::vector<StepRequest> held;
    std::uint32_t held_nodes = 0;
    std::uint32_t waits = 0;  // tickets that are not complete
    bool aborted = false;
    bool committing = false;  // a write with the granted number is under way
    bool finished = false;    // the step is over; PartitionDone may wait for that write
    CommitNumber committed = 0;
    Uses uses;
    std::int64_t began_ns = 0, idle_ns = 0;  // of the timeline: began, went idle; 0: not recorded
    std::int64_t since_ns = 0;               // when it went idle or to a lane; coarse_now_ns()
  };

  Attempt* find(const AttemptId& id);
  bool over(const AttemptId& id) const;
  void end(const AttemptId& id);
  Status check_elements(const Start& start) const;
  void refuse(const AttemptId& id, const RunId& run, Status status, Outputs& out);
  void burst(const AttemptId& id, Attempt& attempt, Outputs& out);
  void after_burst(const AttemptId& id, Attempt& attempt, BurstResult result, Outputs& out);
  void burst_on_lanes(const AttemptId& id, Attempt& attempt, Outputs& out);
  void committed(Attempt& attempt, ResourceAnswer answer, Outputs& out);
  void ask_resource(Attempt& attempt, StepRequest request, Outputs& out);
  ResourceRequest request_of(const Attempt& attempt, std::uint32_t id) const;
  ResourceRequest::Item item_of(Attempt& attempt, RequestItem& item) const;
  void give_element(Attempt& attempt, const RequestItem& asked, ResourceRequest::Item& item) const;
  void note_use(Attempt& attempt, const RequestItem& item) const;
  void note_answer(Attempt& attempt, const ResourceAnswer& answer) const;
  void commit_held(Attempt& attempt, Outputs& out);
  void waits_of(const AttemptId& id, const Attempt& attempt, std::vector<NodeWait>& out) const;
  void went_idle(Attempt& attempt) const;
  void waited_for(Attempt& attempt, std::string_view what) const;
  void end_if_over(const AttemptId& id, Attempt& attempt, Outputs& out);
  void report(const AttemptId& id, Attempt& attempt, StepResult result, Outputs& out);

  const PartitionSetup setup_;
  const MakeOutbox make_outbox_;
  std::unordered_map<AttemptId, Attempt> attempts_;
  std::vector<AttemptId> ended_;  // PartitionDone was sent; ascending; kept until a LiveList
  std::unordered_map<AttemptId, std::vector<Arrival>> early_;
  std::vector<std::shared_ptr<StepState>> pool_;
  LiveList live_;
  InlineLanes inline_lanes_;
  TraceTrack* line_ = nullptr;
};

}  // namespace troupe
