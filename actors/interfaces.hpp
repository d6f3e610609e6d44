// One typed interface per actor. All messages go one way: an answer is a message of its own, so
// that a proxy for another process has nothing to wait for.
#pragma once

#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "actors/messages.hpp"
#include "devices/lanes.hpp"

namespace troupe {

// The interface that takes these messages.
template <class Messages>
struct Takes;
template <class... Messages>
struct Takes<std::tuple<Messages...>> {
  using Actor = caf::typed_actor<caf::reacts_to<Messages>...>;
};

// One partition of one compiled step. The subset that another process can reach comes first.
using PartitionActor =
    caf::typed_actor<caf::reacts_to<StartPartition>, caf::reacts_to<AbortPartition>,
                     caf::reacts_to<RevokeGrant>>;
using ExecutorActor =
    PartitionActor::extend<caf::reacts_to<TensorArrived>, caf::reacts_to<BurstDone>,
                           caf::reacts_to<TicketDone>, caf::reacts_to<ResourceAnswer>,
                           caf::reacts_to<LiveList>, caf::reacts_to<TellWaits>>;

// One device: runs what it is given on the device's lanes, in order. `work` reports by itself.
struct RunOnLanes {
  std::function<void(Lanes&)> work;
  RunId run;            // whose step it is; of none when n is 0
  bool update = false;  // of variables: Device::launch_update
};
using DeviceActor = caf::typed_actor<caf::reacts_to<RunOnLanes>>;

// What bursts of a run are called on lanes, and its client waits for (LentThread).
inline std::uint64_t burst_name(const RunId& run) {
  return run.n == 0 ? 0 : std::hash<RunId>{}(run) | 1;
}

// What executors of this process ask. Reply: ResourceAnswer.
struct ResourceCall {
  ResourceRequest request;
  ExecutorActor reply_to;
};
using ServiceActor = caf::typed_actor<caf::reacts_to<ResourceCall>>;
// One that has a part in transactions.
using ResourceActor = ServiceActor::extend<caf::reacts_to<StageRequest>, caf::reacts_to<LiveList>>;

// A variable container of one device.
struct DeclareVariables {
  std::vector<VariableSpec> variables;
  std::function<void(Status)> done;  // called by the actor
};
struct TaskApplied {
  std::uint64_t task = 0;
  std::shared_ptr<Expected<std::vector<Tensor>>> values;
};
using VariablesActor =
    ResourceActor::extend<caf::reacts_to<DeclareVariables>, caf::reacts_to<TaskApplied>>;

// One input pipeline: element `position` of an endless or finite sequence. A pure function of the
// position, which the master gives (DatasetPlaces), so it has no part in transactions.
using DatasetActor = ServiceActor::extend<caf::reacts_to<Tick>>;

// The master as workers and executors see it, near or through a proxy.
using CoordinatorActor = Takes<ToActors<Sender::worker>>::Actor;

// The process breaks the rules, or has lost what the job needs of it: it is a member no longer. A
// proxy closes the connection to it, with that reason; TaskLost follows.
struct ExpelProcess {
  Status why;
};
// Compiling, importing and folding take as long as a graph is large: a thread of its own does them,
// in order, while runs go on. `work` answers by itself.
struct CompileWork {
  std::function<void()> work;
};
using CompilerActor = caf::typed_actor<caf::reacts_to<CompileWork>>;

// The process that hosts a task, as the master sees it: near or through a proxy.
using ProcessActor = Takes<ToActors<Sender::master>>::Actor::extend<
    caf::reacts_to<Members>, caf::reacts_to<ExpelProcess>, caf::reacts_to<Leave>>;

// The worker itself: a task's devices, executors and resources, and its shard.
using WorkerActor = ProcessActor::extend<caf::reacts_to<EncodedGraph>, caf::reacts_to<StepPrepared>,
                                         caf::reacts_to<StagedAt>, caf::reacts_to<BlockedAt>,
                                         caf::reacts_to<WishLists>, caf::reacts_to<TensorArrived>,
                                         caf::reacts_to<Tick>>;

// A task has a process that hosts it (the master's own, in a job of one): its devices, and how to
// reach it, wherever it is.
struct TaskUp {
  TaskId task{};
  std::string name;  // for errors: "1 at 127.0.0.1:4711"
  std::vector<TargetDevice> devices;
  ProcessActor actor;
};
// The process that hosted it is gone, and with it the state of the task.
struct TaskLost {
  TaskId task{};
  Status why;
};
// A process without a proxy tells the executors it made, so that START takes no detour.
struct ExecutorsMade {
  CompiledId compiled = 0;
  std::vector<std::pair<std::uint32_t, PartitionActor>> executors;
};

using MasterActor = CoordinatorActor::extend<
    caf::reacts_to<OpenSession>, caf::reacts_to<ExtendSession>, caf::reacts_to<CompileStep>,
    caf::reacts_to<RunStep>, caf::reacts_to<CancelRun>, caf::reacts_to<CloseSession>,
    caf::reacts_to<ResetContainers>, caf::reacts_to<RewindStep>, caf::reacts_to<DescribeJob>,
    caf::reacts_to<AskJobWaits>, caf::reacts_to<WaitsDue>, caf::reacts_to<WatchRuns>,
    caf::reacts_to<AskPlace>, caf::reacts_to<AskHomes>, caf::reacts_to<DoneOnce>,
    caf::reacts_to<MarkPlace>, caf::reacts_to<TaskUp>, caf::reacts_to<TaskLost>,
    caf::reacts_to<ExecutorsMade>, caf::reacts_to<GraphExtended>, caf::reacts_to<StepCompiled>,
    caf::reacts_to<Tick>>;

}  // namespace troupe

// None of these is ever serialized by CAF: what crosses processes goes through serialization/.
template <troupe::Crosses Message>
struct caf::allowed_unsafe_message_type<Message> : std::true_type {};
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::TensorArrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::BurstDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::TicketDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ResourceCall)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ResourceAnswer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::StagedAt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::BlockedAt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::WishLists)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::OpenSession)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ExtendSession)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::CompileStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RunStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::CancelRun)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::CloseSession)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ResetContainers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RewindStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::DescribeJob)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::AskJobWaits)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::WaitsDue)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::WatchRuns)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::TellWaits)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::AskPlace)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::AskHomes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::DoneOnce)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::MarkPlace)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::GraphExtended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::StepCompiled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::EncodedGraph)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::StepPrepared)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::CompileWork)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RunOnLanes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::DeclareVariables)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::TaskApplied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::TaskUp)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::TaskLost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ExecutorsMade)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::StageRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ExpelProcess)
