// What the processes of a cluster say to each other. Each struct states sender, receiver, reply and
// errors; serialization/wire.hpp turns them into bytes and back. Inside one process the same
// structs travel as actor messages, so that near and far are the same code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "troupe/core/timeline.hpp"
#include "troupe/core/transaction.hpp"
#include "troupe/graph/compile.hpp"

namespace troupe {

// The settings that decide bits, the numeric profile. Fixed by the master, sent
// in Welcome; a worker that cannot compute like that refuses to join.
struct NumericProfile {
  std::uint32_t isa = 0;                // x86-64 level of the kernels
  std::string kernels;                  // versions of oneDNN, Eigen, compiler and C library
  std::int64_t l1 = 0, l2 = 0, l3 = 0;  // cache sizes given to Eigen, bytes
  friend bool operator==(const NumericProfile&, const NumericProfile&) = default;
};

// Hashes of what a program registered. A graph means the same to two processes only when they agree
// in all three, so a worker that differs is refused.
struct Registered {
  std::uint64_t ops = 0, passes = 0, devices = 0;
  friend bool operator==(const Registered&, const Registered&) = default;
};

// First words of a process that connects, in the transport's hello. `process` is 0 to the master,
// which gives the numbers. Sender: any worker. Receiver: master, or a worker with a lower number.
struct Join {
  std::uint32_t version = 3;  // of this protocol; another one is refused
  ProcessId process = 0;
  std::uint64_t incarnation = 0;  // random, new per process start
  std::string job;
  std::string listen_host;  // where other workers reach it
  std::uint16_t listen_port = 0;
  std::uint32_t cpus = 0;  // lanes of its cpu:0
  NumericProfile profile;  // what it can do at best
  Registered registered;
};

// Master to a worker that was admitted; its devices are /job:worker/task:(task)/...
struct Welcome {
  ProcessId process = 0;
  std::uint32_t task = 0;
  std::uint32_t threads = 0;  // lanes to use; 0: as many as cores
  NumericProfile profile;
  std::vector<std::string> devices;  // device types to make, e.g. "CPU", "FAKE"
};
// Worker to master. Reply to Welcome (view 0): it has made its devices, or why it could not. Reply
// to Members: it is connected to every other member of that view.
struct Ready {
  ProcessId process = 0;
  std::vector<std::string> devices;  // full names
  Status status;                     // failed_precondition: cannot apply the profile
  std::uint64_t view = 0;
};

// Master to every worker when the set of members changes. A worker connects to those of a lower
// number that it does not know yet, and leaves those that are not in it any more.
// Reply: Ready, or LinkLost.
struct Member {
  ProcessId process = 0;
  std::uint64_t incarnation = 0;
  std::string host;
  std::uint16_t port = 0;
};
struct Members {
  std::uint64_t view = 0;
  std::vector<Member> members;
};

// Worker to master: its connection to another member of the view broke, or never came about.
struct LinkLost {
  ProcessId process = 0;  // who says so
  std::uint64_t view = 0;
  ProcessId other = 0;
  Status why;
};

// The nodes that a session's graph has got since `from`, which the receiver has; from 0 the graph
// as it is, in place of an earlier one. Inputs name nodes by their places in the whole graph.
// Master to workers, before a LoadStep that needs it.
struct LoadGraph {
  std::uint64_t session = 0;
  std::uint64_t version = 0;  // number of nodes then
  std::shared_ptr<const GraphDef> graph;
  std::uint64_t from = 0;  // number of nodes before
};

// Compile and make ready the partitions of this process. Every process compiles the same graph for
// the same target, which is a pure function, and takes its own plans. Master to workers.
// Reply: StepLoaded.
struct LoadStep {
  CompiledId compiled = 0;
  std::uint64_t session = 0;
  std::uint64_t version = 0;  // of the graph
  CompileRequest request;
  std::vector<TargetDevice> devices;        // of the whole cluster
  std::vector<ProcessId> processes;         // parallel to devices: who has it
  std::map<std::string, DeviceName> fixed;  // placements that must stay
  bool soft_placement = true;
  std::vector<std::string> disabled_passes;
};
struct StepLoaded {
  CompiledId compiled = 0;
  ProcessId process = 0;
  Status status;
};
// Nobody will run it again. Master to workers.
struct UnloadStep {
  CompiledId compiled = 0;
};
// Drop the variables and queues of these containers: whoever names one later makes it anew. Every
// step that uses one was unloaded before. Master to workers. No reply: it is done before whatever
// is sent later.
struct DropContainers {
  std::vector<std::string> containers;
};

// Master to the executor of one partition: begin an attempt. Known or ended attempts ignore it.
// Reply: PartitionDone. Feeds that are large, or many, travel as tensors on the data connection and
// are left undefined here.
struct StartPartition {
  CompiledId compiled = 0;
  std::uint32_t partition = 0;
  AttemptInfo attempt;
  std::uint64_t random_index = 0;  // k of the random number counter
  CommitNumber grant = 0;          // fast path, or 0
  std::vector<Tensor> feeds;       // in the order of Plan::feeds
  // Of each dataset that the plan reads, in the order of its resources, the elements of this run:
  // one for each replica.
  std::vector<std::vector<std::uint64_t>> elements;
};
// Master to an executor; Coordinator::AbortAttempt says how it is obeyed.
struct AbortPartition {
  CompiledId compiled = 0;
  std::uint32_t partition = 0;
  AttemptId attempt;
  RunId run;
  Status cause;
};

// Master to the executor that was granted a number: others want it. Reply: GrantReturned, unless
// the write that carries it is under way, or the attempt over or not begun.
struct RevokeGrant {
  CompiledId compiled = 0;
  std::uint32_t partition = 0;
  AttemptId attempt;
  RunId run;
};

// Master to all: the job ends, leave in order.
struct Leave {
  Status why;
};

// A piece of a message that is too long for one frame. Sent one after the other by whoever sends
// the message, which is what they are when all are there (serialization/parts.hpp).
struct MessagePart {
  std::uint64_t total = 0;   // bytes of the whole message
  std::uint64_t offset = 0;  // of these in it
  std::vector<std::byte> bytes;
};

// Master to a worker: record spans from now on, or no more. Reply to the latter: TraceSpans.
struct RecordTrace {
  bool on = false;
};
// Worker to master: what it recorded, in as many messages as it takes (actors/processes/
// gathering.hpp). Spans do not end before they begin, and names are bounded.
struct TraceSpans {
  std::vector<Track> tracks;
  std::uint64_t dropped =
      0;  // spans that made room for newer ones, besides those of other messages
  bool last = false;
};

// Everything that crosses a control connection.
using WireMessage =
    std::variant<Welcome, Ready, Members, LoadGraph, LoadStep, StepLoaded, UnloadStep,
                 StartPartition, AbortPartition, PartitionDone, Prepare, Staged, LiveList,
                 BlockedReport, Leave, DropContainers, RevokeGrant, GrantReturned, LinkLost,
                 MessagePart, RecordTrace, TraceSpans>;

// The tag in front of a tensor on a data connection (at most kMaxTensorTag bytes).
struct TensorTag {
  // What the tensor is: an element of a channel, or a feed or fetch that its message leaves out.
  enum class Kind : std::uint8_t { channel = 0, feed = 1, fetch = 2 };
  Kind kind = Kind::channel;
  CompiledId compiled = 0;
  std::uint32_t partition = 0;  // receiving partition (channel, feed); sending one (fetch)
  AttemptId attempt;
  std::uint32_t index = 0;               // channel id, feed or fetch index
  std::vector<std::int64_t> iterations;  // at most 8
  DType dtype = DType::invalid;
  Shape shape;
  bool dead = false;
};

}  // namespace troupe
