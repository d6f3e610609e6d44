// Messages between actors of one process, but for those that carry actors (interfaces.hpp). Those
// that can cross to another process are in serialization/messages.hpp and mean the same here.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/burst/step_state.hpp"
#include "actors/call.hpp"
#include "actors/resources/queue_state.hpp"
#include "actors/resources/request.hpp"
#include "actors/resources/variable_store.hpp"
#include "core/transaction.hpp"
#include "serialization/messages.hpp"

namespace troupe {

struct CompiledStepDraft;  // actors/master/session_graphs.hpp
struct PreparedStep;       // actors/worker/load_step.hpp

// ---- to an executor --------------------------------------------------------------------------

// An element of a channel. Sender: a burst of another partition of this process, or the hub for a
// remote one. No reply. Early ones are parked until the attempt starts, late ones dropped.
struct TensorArrived {
  CompiledId compiled = 0;
  std::uint32_t partition = 0;
  AttemptId attempt;
  ChannelId channel = 0;
  Tag tag;
  Tensor tensor;
  bool dead = false;
};
// A burst ran until nothing was ready. Sender: the lane that ran it.
struct BurstDone {
  AttemptId attempt;
  std::shared_ptr<BurstResult> result;
};
// The work behind a ticket is done, or failed. Sender: a thread of the device.
struct TicketDone {
  AttemptId attempt;
  std::uint64_t wait = 0;
  Status status;
};

// ---- worker and its resources ------------------------------------------------------------------

// From a resource to its worker, which is the shard of its process.
struct StagedAt {
  ResourceId resource;
  ResourceStaged staged;
};
struct BlockedAt {
  ResourceId resource;
  std::vector<AttemptId> waiting;
  std::vector<RunId> marked;
  std::string why = {};  // ResourceBlocked::why
};
// The resource must be told of LiveLists, or need not be (ListWish).
struct WishLists {
  ResourceId resource;
  bool on = true;
};

// What executors of a task say of their waits. Each writes the part at its own place; when all
// have, or are gone, the last reference goes and tells the master.
struct WaitsGathering {
  ~WaitsGathering();
  TaskWaits answer;
  std::map<std::uint64_t, std::string> resources;  // what is the matter with them, by hash
  std::vector<std::vector<NodeWait>> parts;
  std::function<void(TaskWaits)> send;
};
// From the worker to its executors.
struct TellWaits {
  std::shared_ptr<WaitsGathering> to;
  std::size_t place = 0;
};

// ---- client to master ------------------------------------------------------------------------

struct OpenSession {
  std::uint64_t session = 0;
  std::shared_ptr<Call> call;
};
// Extend: the nodes that the session's graph has got since `from`, the number of those that the
// master has, whose running hash (graph/node_hash.hpp) is `hash`; or, from 0, the whole graph as it
// is now, in which nodes that the master knows must be unchanged. Result: ok, or why the new nodes
// were refused; then the old graph stands.
struct ExtendSession {
  std::uint64_t session = 0;
  std::shared_ptr<const GraphDef> graph;
  std::shared_ptr<Call> call;
  std::uint64_t from = 0;
  std::uint64_t hash = 0;
};
// Result: CallResult::compiled.
struct CompileStep {
  std::uint64_t session = 0;
  CompileRequest request;
  std::shared_ptr<Call> call;
};
// Result: the fetches, in order.
struct RunStep {
  RunId run;
  CompiledId compiled = 0;
  std::vector<Tensor> feeds;  // in the order of the request's feeds
  Instant timeout = kNever;   // from now; kNever: none
  Acknowledged acknowledged;  // answers that have arrived
  // Of the session itself, as for its state: the result says where the job stood when the run
  // started.
  bool with_place = false;
  std::shared_ptr<const std::string> note;  // what is kept with its commit; null: none
  OnNan on_nan = OnNan::commit;
  Commit commit = Commit::checked;
  // The run restores a job, which goes on from this place if it commits (RunRequest::resume).
  std::shared_ptr<const JobPlace> resume;
  std::shared_ptr<Call> call;
};
struct CancelRun {
  RunId run;
  Status cause;
};
// Cancels the session's runs, waits for them. Result: ok.
struct CloseSession {
  std::uint64_t session = 0;
  std::shared_ptr<Call> call;
};
// Drops the variables and queues of the containers, of all sessions; datasets begin anew. Runs
// under way that use one are aborted unless their commit is decided. Result: ok, and every later
// run finds it done; or why the job has stopped, or that the program has not asked for its place.
struct ResetContainers {
  std::vector<std::string> containers;  // "": the default one
  std::shared_ptr<Call> call;
  RunId action = {};  // its number, see Coordinator::begin_action
  Acknowledged acknowledged = {};
};
// The datasets that a compiled step reads begin anew, for all steps that read them. Result: ok;
// failed_precondition while a run has elements of one, invalid_argument when the step reads none,
// or that the step is unloaded.
struct RewindStep {
  std::uint64_t session = 0;
  CompiledId compiled = 0;
  std::shared_ptr<Call> call;
  RunId action = {};
  Acknowledged acknowledged = {};
};
// What runs wait for, over all processes: CallResult::waits, after half a second at the latest.
struct AskJobWaits {
  std::shared_ptr<Call> call;
};
// The master to itself: who has not told by now what its attempts wait for is not waited for.
struct WaitsDue {
  std::uint64_t round = 0;
};
// The master to itself, every few seconds while a run takes long.
struct WatchRuns {};
// What the master knows, as lines of text.
struct DescribeJob {
  std::shared_ptr<Call> call;
};
// Where the job stands: CallResult::place. Whoever asks may write from now on.
struct AskPlace {
  std::uint64_t session = 0;
  std::shared_ptr<Call> call;
};
// The devices that have these variables: CallResult::text, in order, "" for one that nobody has
// placed yet. CallResult::seen: the last commit.
struct AskHomes {
  std::vector<std::pair<std::string, std::string>> variables;  // container and name
  std::shared_ptr<Call> call;
};
// The program has come so far without a commit: the note of its place from now on.
struct MarkPlace {
  std::uint64_t session = 0;
  std::string note;
  std::shared_ptr<Call> call;
};
// The program has done this, once in the life of the job: part of its place from now on.
struct DoneOnce {
  std::uint64_t session = 0;
  std::string name;
  std::shared_ptr<Call> call;
};

// ---- a compile thread, answering ---------------------------------------------------------------

// Set by whoever asked for work and wants it no more. What has not begun does not begin, a compile
// under way ends at its next stage.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// To the master. `work` is the number that it gave the work; it may have lost interest since.
struct GraphExtended {
  std::uint64_t session = 0;
  std::uint64_t work = 0;
  Status status;
  std::uint64_t version = 0;  // nodes of the graph now
  bool changed = false;       // some of those before are others: loops were closed
};
struct StepCompiled {
  std::uint64_t session = 0;
  std::uint64_t work = 0;
  std::shared_ptr<CompiledStepDraft> draft;
};
// To the worker: what a LoadStep became.
struct StepPrepared {
  CompiledId compiled = 0;
  std::shared_ptr<PreparedStep> step;
  StopFlag stop;  // the one that was given with the work
};

// To the worker, by its hub: a LoadGraph of the master's, which nobody has looked at yet.
struct EncodedGraph {
  std::shared_ptr<const void> holds;  // the bytes
  std::span<const std::byte> bytes;
};

// Time to look at the clock. An actor to itself.
struct Tick {};

}  // namespace troupe
