# What crosses a control connection, one Message per frame, unpacked. serialization/messages.hpp
# says who sends what to whom and what the fields mean.
@0xc6582ed120a0d798;

using Cxx = import "/capnp/c++.capnp";
using V = import "/serialization/schema/value.capnp";
using G = import "/serialization/schema/graph.capnp";
$Cxx.namespace("troupe::schema");

struct Message {
  union {
    none @0 :Void;               # refused: an empty message means nothing
    welcome @1 :Welcome;
    ready @2 :Ready;
    members @3 :Members;
    loadGraph @4 :LoadGraph;
    loadStep @5 :LoadStep;
    stepLoaded @6 :StepLoaded;
    unloadStep @7 :UnloadStep;
    startPartition @8 :StartPartition;
    abortPartition @9 :AbortPartition;
    partitionDone @10 :PartitionDone;
    prepare @11 :Prepare;
    staged @12 :Staged;
    liveList @13 :LiveList;
    blockedReport @14 :BlockedReport;
    leave @15 :Leave;
    part @16 :Part;
    dropContainers @17 :DropContainers;
    revokeGrant @18 :RevokeGrant;
    grantReturned @19 :GrantReturned;
    linkLost @20 :LinkLost;
  }
}

struct NumericProfile {
  isa @0 :UInt32;
  kernels @1 :Text;
  l1 @2 :Int64;
  l2 @3 :Int64;
  l3 @4 :Int64;
}

# The hello of a connection, a message of its own of at most 3 KiB.
struct Join {
  version @0 :UInt32;
  process @1 :UInt32;
  incarnation @2 :UInt64;
  job @3 :Text;
  listenHost @4 :Text;
  listenPort @5 :UInt16;
  cpus @6 :UInt32;
  profile @7 :NumericProfile;
  registered @8 :Registered;
}

struct Registered {
  ops @0 :UInt64;
  passes @1 :UInt64;
  devices @2 :UInt64;
}

struct Welcome {
  process @0 :UInt32;
  task @1 :UInt32;
  threads @2 :UInt32;
  profile @3 :NumericProfile;
  devices @4 :List(Text);
}

struct Ready {
  process @0 :UInt32;
  devices @1 :List(Text);
  status @2 :V.Status;
  view @3 :UInt64;
}

struct Member {
  process @0 :UInt32;
  incarnation @1 :UInt64;
  host @2 :Text;
  port @3 :UInt16;
}

struct Members {
  view @0 :UInt64;
  members @1 :List(Member);
}

struct LinkLost {
  process @0 :UInt32;
  view @1 :UInt64;
  other @2 :UInt32;
  why @3 :V.Status;
}

struct LoadGraph {
  session @0 :UInt64;
  version @1 :UInt64;
  graph @2 :G.Graph;
  from @3 :UInt64;
}

struct LoadStep {
  compiled @0 :UInt64;
  session @1 :UInt64;
  version @2 :UInt64;
  feeds @3 :List(Text);          # PortName::text()
  fetches @4 :List(Text);
  targets @5 :List(Text);
  replicas @6 :Int32;
  devices @7 :List(Device);
  fixed @8 :List(Fixed);         # by node, each once
  softPlacement @9 :Bool;
  disabledPasses @10 :List(Text);
}

struct Device {
  name @0 :Text;                 # full
  space @1 :UInt8;               # core/buffer.hpp
  process @2 :UInt32;
}

struct Fixed {
  node @0 :Text;
  device @1 :Text;               # DeviceName::text()
}

struct StepLoaded {
  compiled @0 :UInt64;
  process @1 :UInt32;
  status @2 :V.Status;
}

struct UnloadStep {
  compiled @0 :UInt64;
}

struct DropContainers {
  containers @0 :List(Text);
}

struct AttemptInfo {
  id @0 :V.AttemptId;
  run @1 :V.RunId;
  snapshot @2 :UInt64;
  marksFrom @3 :UInt64;
  minLive @4 :UInt64;
  sessionFrom @5 :UInt64;
}

struct StartPartition {
  compiled @0 :UInt64;
  partition @1 :UInt32;
  attempt @2 :AttemptInfo;
  randomIndex @3 :UInt64;
  grant @4 :UInt64;
  feeds @5 :List(V.Tensor);
  elements @6 :List(List(UInt64));
}

struct AbortPartition {
  compiled @0 :UInt64;
  partition @1 :UInt32;
  attempt @2 :V.AttemptId;
  run @3 :V.RunId;
  cause @4 :V.Status;
}

struct ResourceWrites {
  process @0 :UInt32;
  index @1 :UInt32;
  keys @2 :UInt32;
}

struct Uses {
  reads @0 :List(UInt64);
  updates @1 :List(UInt64);
  ownDequeues @2 :List(UInt64);
  enqueues @3 :List(UInt64);
}

struct Fetched {
  index @0 :UInt32;
  value @1 :V.Tensor;
}

struct PartitionDone {
  attempt @0 :V.AttemptId;
  run @1 :V.RunId;
  partition @2 :UInt32;
  status @3 :V.Status;
  fetches @4 :List(Fetched);
  writes @5 :List(ResourceWrites);
  uses @6 :Uses;
  fastCommitted @7 :UInt64;
}

struct Prepare {
  view @0 :UInt64;
  s @1 :UInt64;
  attempt @2 :V.AttemptId;
  run @3 :V.RunId;
  resources @4 :List(ResourceWrites);
  minLive @5 :UInt64;
  round @6 :UInt64;
  withdrawn @7 :Bool;
}

struct Staged {
  view @0 :UInt64;
  shard @1 :UInt32;
  s @2 :UInt64;
  hash @3 :UInt64;
  round @4 :UInt64;
  status @5 :V.Status;
}

struct RevokeGrant {
  compiled @0 :UInt64;
  partition @1 :UInt32;
  attempt @2 :V.AttemptId;
  run @3 :V.RunId;
}

struct GrantReturned {
  attempt @0 :V.AttemptId;
  run @1 :V.RunId;
}

struct LiveAttempt {
  a @0 :UInt64;
  run @1 :V.RunId;
  marksFrom @2 :UInt64;
}

struct LiveList {
  view @0 :UInt64;
  sequence @1 :UInt64;
  decided @2 :UInt64;
  minLive @3 :UInt64;
  nextA @4 :UInt64;
  live @5 :List(LiveAttempt);    # ascending by a
}

struct BlockedReport {
  view @0 :UInt64;
  shard @1 :UInt32;
  sequence @2 :UInt64;
  waiting @3 :List(V.AttemptId);
  marked @4 :List(V.RunId);
}

struct Leave {
  why @0 :V.Status;
}

struct Part {
  total @0 :UInt64;              # bytes of the whole message
  offset @1 :UInt64;             # of these in it
  bytes @2 :Data;
}
