// What an executor decides: the attempts at one partition of a compiled step. No actors in here.
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

// A resource of the plan, as commits and conflicts know it.
struct PartitionResource {
  ResourceId id;
  std::string name;       // of the variable, inside its container
  std::uint64_t key = 0;  // names the variable or queue for conflicts (Uses)
  bool outside = false;   // ResourceWrites::outside
};

// What is particular to a write node.
struct WriteInfo {
  std::shared_ptr<const UpdateRule> rule;
  std::uint32_t key = 0;  // WriteKey::node: equal for the copies made for replicas
  std::uint32_t replica = 0;
};

// What all attempts at a partition share. Immutable.
struct PartitionSetup {
  std::uint32_t partition = 0;
  std::shared_ptr<const LoadedPlan> program;
  std::vector<PartitionResource> resources;  // parallel to Plan::resources
  std::vector<DatasetRead> datasets;
  std::unordered_map<std::uint32_t, WriteInfo> writes;  // by plan node
  // For reads ordered after writes of their own run: the keys of those writes, by plan node.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> after;
  std::shared_ptr<Trace> trace;  // null: nothing is recorded
  // What steps of this process may hold; null: as much as there is.
  std::shared_ptr<StepMemories> memories;
  // What comes from other partitions, for who asks what a run waits for.
  struct Inbound {
    std::string name;        // "node:port"
    std::uint32_t from = 0;  // partition
  };
  std::unordered_map<ChannelId, Inbound> inbound;
};

// The machine between the coordinator, the bursts of a partition and the resources it uses: what is
// asked of whom, when a granted number may be used, when an attempt is over and what it reports.
//
// Owned by the partition's executor, or by a simulation. Inputs append to `out` what has to be
// done; the machine itself runs only what is cheap, on the caller's thread. Messages to it may come
// early (a tensor before its START), twice or late (of an attempt that is over); those to resources
// and their answers are neither lost nor doubled, as they do not leave the process.
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
  // Run step->run(lanes) on a lane, then burst_done(). Both pointers live until then.
  struct Burst {
    AttemptId attempt;
    RunId run;
    std::shared_ptr<StepState> step;
    std::shared_ptr<StepOutbox> outbox;
  };
  // Ask the device to tell when the ticket is complete: waited().
  struct Await {
    AttemptId attempt;
    StepWait wait;
  };
  // PartitionDone and GrantReturned are for the coordinator.
  using Output = std::variant<Ask, Burst, Await, PartitionDone, GrantReturned>;
  using Outputs = std::vector<Output>;

  // Makes what takes the tensors of an attempt that leave the partition.
  using MakeOutbox = std::function<std::shared_ptr<StepOutbox>(const AttemptId&)>;
  PartitionRuns(PartitionSetup setup, MakeOutbox make_outbox);

  const PartitionSetup& setup() const { return setup_; }

  void start(Start start, Outputs& out);
  // Coordinator::AbortAttempt says how it is obeyed.
  void abort(const AttemptId& attempt, const RunId& run, Status cause, Outputs& out);
  // Others want the number that the attempt was granted: GrantReturned, unless it is used already.
  void revoke(const AttemptId& attempt, const RunId& run, Outputs& out);
  void arrived(const AttemptId& attempt, Arrival arrival, Outputs& out);
  void burst_done(const AttemptId& attempt, BurstResult result, Outputs& out);
  void waited(const AttemptId& attempt, std::uint32_t wait, Status status, Outputs& out);
  void answered(ResourceAnswer answer, Outputs& out);
  // What is over is forgotten.
  void live(const LiveList& list);

  struct Tables {
    std::size_t attempts = 0, early = 0;  // those that are over included, until a LiveList
    bool empty() const { return attempts + early == 0; }
  };
  Tables tables() const { return {attempts_.size() + ended_.size(), early_.size()}; }

  // What attempts wait for here: at least one for each that is not over.
  void waits(std::vector<NodeWait>& out) const;

  // The line of the timeline that shows attempts at this partition, and what they wait for; null
  // while nothing is recorded.
  TraceTrack* line() const { return active(setup_.trace) ? line_ : nullptr; }

 private:
  // One attempt of one run, from START until it is answered.
  struct Attempt {
    AttemptInfo info;
    CommitNumber grant = 0;
    std::vector<std::vector<std::uint64_t>> elements;
    std::vector<std::uint64_t> used;  // of these, how many
    std::shared_ptr<StepState> step;
    std::shared_ptr<StepOutbox> outbox;
    bool bursting = false;
    // Requests with no answer yet, and the resource they went to; a held one waits for the rest of
    // the step (fast path).
    struct Asked {
      std::uint32_t resource = 0, node = 0;  // the first of its nodes
      std::uint64_t position = 0;            // of a dataset
      std::int64_t since_ns = 0;
    };
    std::map<std::uint32_t, Asked> asked;
    std::vector<StepRequest> held;
    std::uint32_t held_nodes = 0;
    std::uint32_t waits = 0;  // tickets that are not done yet
    bool aborted = false;
    bool committing = false;  // a write that carries the grant is under way
    bool finished = false;    // the step is over; PartitionDone waits for that write
    CommitNumber committed = 0;
    Uses uses;
    std::int64_t began_ns = 0, idle_ns = 0;  // when it did, or went idle; 0: not recorded
    std::int64_t since_ns = 0;               // when it went idle, or to a lane, by a coarse clock
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
  std::vector<AttemptId> ended_;  // PartitionDone was sent; ascending; until a LiveList covers them
  std::unordered_map<AttemptId, std::vector<Arrival>> early_;
  std::vector<std::shared_ptr<StepState>> pool_;
  LiveList live_;
  InlineLanes inline_lanes_;
  TraceTrack* line_ = nullptr;
};

}  // namespace troupe
