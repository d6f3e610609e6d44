// The vocabulary of a run as a transaction: what its attempts, the resources it touches, their
// shards and the coordinator say to each other. Plain values, shared by the state machines that
// decide and by the messages that carry them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/task_id.hpp"
#include "core/tensor.hpp"

namespace troupe {

// A moment on some monotonic clock of the caller's. No state machine here reads a clock.
using Instant = std::chrono::nanoseconds;
inline constexpr Instant kNever = Instant::max();

// Which answers of a session have arrived at its client: of the runs below `below` all but those
// in `but`, which are the ones that still run. So it is short, however long one of them takes.
struct Acknowledged {
  std::uint64_t below = 0;
  std::vector<std::uint64_t> but;  // ascending, below `below`

  bool covers(std::uint64_t n) const;
  // Learns what `other` says. Both stay true for ever, so their order does not matter.
  void merge(const Acknowledged& other);
};

// What names a resource wherever it is: checkpoints go by it.
struct ResourceName {
  std::string kind;       // External::resource
  std::string container;  // "" is the default one
  std::string name;       // shared_name or node name
  friend auto operator<=>(const ResourceName&, const ResourceName&) = default;
  // "queue 'q'", "queue 'q' of container 'c'", for errors.
  std::string text() const;
};

// What such a resource holds, as a tensor of bytes (serialization/resource_state.hpp).
struct SavedResource {
  ResourceName resource;
  Tensor state;
};

// The same in every process, whatever it made first. A container of variables has no name.
std::uint64_t resource_hash(std::string_view device, const ResourceName& name);

// A variable container or a queue: the task that it belongs to, and its resource_hash(). All
// resources of one task are one shard, named by that task.
struct ResourceId {
  TaskId task{};
  std::uint64_t hash = 0;
  friend auto operator<=>(const ResourceId&, const ResourceId&) = default;
};

// An input pipeline of the job. Named as variables and queues are: the steps that read it share how
// far it is read.
struct DatasetName {
  std::string container;  // "" is the default one
  std::string name;       // shared_name or node name
  friend auto operator<=>(const DatasetName&, const DatasetName&) = default;
};

inline constexpr std::uint64_t kMostElements = std::uint64_t{1} << 62;  // of a dataset

// How far a dataset is read: elements below `next` have been used, but for those in `left`, which
// runs had taken that failed while others went on.
struct DatasetPlace {
  DatasetName dataset;
  std::uint64_t next = 0;
  std::vector<std::uint64_t> left;  // ascending
  // Whether a dataset can be there, whoever says so.
  bool possible() const;
  friend bool operator==(const DatasetPlace&, const DatasetPlace&) = default;
};

// What a run is given of a dataset of which it takes as many elements as it likes: all that nobody
// has used, the last entry of `given` and what is behind it included. The i-th of these.
inline std::uint64_t element_number(const std::vector<std::uint64_t>& given, std::uint64_t i) {
  const std::uint64_t last = given.size() - 1;
  return i < last ? given[i] : given.back() + (i - last);
}

inline constexpr std::size_t kMostNote = std::size_t{64} << 10;  // bytes of a run's note
inline constexpr std::size_t kSmallFetches = 4096;               // bytes that a JobPlace holds

// Where a job stands: its last commit, and what was kept with it.
struct JobPlace {
  CommitNumber committed = 0;               // 0: nothing was committed yet
  std::vector<DatasetPlace> datasets = {};  // those that are not at their beginning
  std::string note = {};                    // of the last run that had one
  std::set<std::string> once = {};          // names of what was done once
  std::vector<Tensor> fetches = {};         // of that commit; none if above kSmallFetches in all
  std::uint64_t draws = 0;  // runs since that commit that drew random numbers and wrote nothing
};

// What every request of an attempt to a resource carries, as START gave it.
struct AttemptInfo {
  AttemptId id;
  RunId run;
  CommitNumber snapshot = 0;     // R: what its reads see
  std::uint64_t marks_from = 0;  // the first attempt (a) of this run whose queue marks it inherits
  CommitNumber min_live = 0;     // no attempt with a lower snapshot was alive when this one started
  // Every attempt of its session below this one is over: what they marked in a queue is free, so
  // that a client that issues runs in order finds the elements in order.
  std::uint64_t session_from = 0;
};

// Names one contribution inside an attempt. Iteration numbers outermost to innermost. A request
// with a key that is already known is acknowledged and ignored.
struct WriteKey {
  std::uint32_t node = 0;
  std::uint32_t replica = 0;  // logical replica
  std::vector<std::int64_t> iterations;
  friend auto operator<=>(const WriteKey&, const WriteKey&) = default;
};

// How many write keys (variable contributions, queue operations) an attempt left at a resource.
struct ResourceWrites {
  ResourceId resource;
  std::uint32_t keys = 0;
  // What it changes is seen outside of the job, as files are: the run is answered once it is
  // applied.
  bool outside = false;
  friend bool operator==(const ResourceWrites&, const ResourceWrites&) = default;
};

struct LiveAttempt {
  std::uint64_t a = 0;
  RunId run;
  std::uint64_t marks_from = 0;
  CommitNumber snapshot = 0;  // the only one that it reads
};

// The idle COMMIT, from the coordinator to every process, which hands it to its resources: all
// commits up to `decided` are decided, and every attempt below `next_a` that is not listed is over:
// its log, marks, waiters and parked data go, its late messages are refused. Idempotent; an older
// one (by view, then sequence) is ignored.
struct LiveList {
  std::uint64_t view = 0;
  std::uint64_t sequence = 0;
  CommitNumber decided = 0;
  CommitNumber min_live = 0;  // no attempt alive now, or started later, has a lower snapshot
  std::uint64_t next_a = 0;
  std::vector<LiveAttempt> live;  // ascending by a

  bool newer_than(const LiveList& other) const;
  bool over(const AttemptId& attempt) const;
  // Whether an attempt that is not over may have a snapshot in [from, before): a listed one has its
  // own, one that started after this list `decided` or a later one.
  bool may_read(CommitNumber from, CommitNumber before) const;
  // Queue marks that attempt `a` of `run` left are kept for a later attempt of the same run.
  bool keeps_marks(const RunId& run, std::uint64_t a) const;
};

// What becomes of an attempt's log under a number.
enum class StageOrder : std::uint8_t {
  stage = 0,     // once all its keys are there
  withdraw = 1,  // the number will not be that attempt's: what is staged of it goes
  apply = 2,     // the number is decided, and somebody waits for what it changes
};

// Shard to resource. `stage` says that every number below s is decided. All but `withdraw` are
// answered.
struct StageRequest {
  CommitNumber s = 0;
  AttemptId attempt;
  std::uint32_t keys = 0;
  CommitNumber min_live = 0;
  StageOrder order = StageOrder::stage;
};
// Resource to shard: staged, and applying it will not fail for want of anything; or applied; or why
// it cannot be. The hash covers keys, rules, types and shapes, in order.
struct ResourceStaged {
  CommitNumber s = 0;
  AttemptId attempt;
  std::uint64_t hash = 0;
  Status status;
};

// Coordinator to each shard that it concerns, re-sent until answered. `round` is one more for every
// number that is given, taken back or applied: of two the shard obeys the higher one, for good.
struct Prepare {
  std::uint64_t view = 0;
  CommitNumber s = 0;
  AttemptId attempt;
  RunId run;
  std::vector<ResourceWrites> resources;  // of this shard; empty stages an empty record
  CommitNumber min_live = 0;
  std::uint64_t round = 0;
  StageOrder order = StageOrder::stage;
};
// Shard to coordinator: it has done as PREPARE said; or why it cannot stage, and then it has not.
struct Staged {
  std::uint64_t view = 0;
  TaskId shard{};
  CommitNumber s = 0;
  std::uint64_t hash = 0;
  std::uint64_t round = 0;
  Status status;
};

// Shard to coordinator: the attempts that wait at its resources, and the runs that hold marks
// (leases, reservations) at a resource where somebody waits. Sent when it changes, repeated while
// anybody waits. Empty: nobody waits. Of more than kMost the oldest ones.
struct BlockedReport {
  static constexpr std::size_t kMost = 1 << 16;  // attempts, and runs

  std::uint64_t view = 0;
  TaskId shard{};
  std::uint64_t sequence = 0;
  std::vector<AttemptId> waiting;
  std::vector<RunId> marked;
};

// What the coordinator must know of the variables and queues that a partition used, to find
// conflicts. The numbers name one variable or queue each; only their equality matters.
struct Uses {
  std::vector<std::uint64_t> reads;         // what it saw: values, sizes; and what it replaced
  std::vector<std::uint64_t> updates;       // what it changed. A blind (rule, gradient) update of
                                            // what the run did not see conflicts with nobody
  std::vector<std::uint64_t> own_dequeues;  // that gave what only its own operations let them
  std::vector<std::uint64_t> enqueues;      // queues it enqueued to, or closed
};

// The executor of a granted number to the coordinator: it has not used the number and will not.
struct GrantReturned {
  AttemptId attempt;
  RunId run;
};

// When the updates of a run are made.
enum class Commit : std::uint8_t {
  checked = 0,    // only if nothing that it read has changed since; otherwise it is done again
  immediate = 1,  // as soon as they are computed, whatever has changed since
};

// What becomes of a run that fetches what is no number (NaN).
enum class OnNan : std::uint8_t {
  commit = 0,  // as of any other
  fail = 1,    // it fails with out_of_range, and nothing is committed
  drop = 2,    // it ends well and has used its elements of datasets, but nothing is committed
};

struct Fetched {
  std::uint32_t index = 0;  // place in the client's fetch list
  Tensor value;
};

// A partition executor to the coordinator, once an attempt. An error ends the attempt.
// `fast_committed` is the granted number when its one write message was acknowledged.
struct PartitionDone {
  AttemptId attempt;
  RunId run;
  std::uint32_t partition = 0;
  Status status;
  std::vector<Fetched> fetches;
  std::vector<ResourceWrites> writes;
  Uses uses;
  CommitNumber fast_committed = 0;
  // Of each dataset, as START named them, how many of the elements it has come to use.
  std::vector<std::uint64_t> elements;

  // For an attempt that did not begin, or came to nothing.
  static PartitionDone failed(const AttemptId& attempt, const RunId& run, std::uint32_t partition,
                              Status why);
};

}  // namespace troupe
