// The state of a bounded queue of tuples, with transactions.
#pragma once

#include <array>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/resources/participant.hpp"
#include "actors/resources/queue_spec.hpp"
#include "actors/resources/resource.hpp"
#include "graph/op_def.hpp"

namespace troupe {

// The requests, outputs and state of a queue.
struct QueueTypes {
  struct Request {
    std::uint64_t id = 0;
    AttemptInfo attempt;
    WriteKey key;
  };
  // How many elements a dequeue takes. `batched`: stacked (DequeueMany). `up_to`: a closed queue
  // may return fewer.
  struct Wanted {
    std::int64_t n = 1;
    bool batched = false, up_to = false;
  };
  using Reply = ResourceReply;  // values: of a dequeue its elements, of a look its results
  using Blocked = ResourceBlocked;
  using Output = Resource::Output;
  using Outputs = std::vector<Output>;

  using ElementId = std::uint64_t;  // later ones are higher; 0: an element of the run's own
  // The mark of an element that a dequeue has taken.
  struct Lease {
    RunId run;
    AttemptId attempt;       // that leased it last
    CommitNumber drawn = 0;  // the snapshot of the attempt that leased it first
  };
  struct Enqueued {
    QueueElement value;
    bool consumed = false;  // by a dequeue of its own run
  };
  struct Dequeued {
    std::vector<ElementId> elements;
    std::vector<Tensor> values;  // the answer
    bool own = false;            // because of what the run has put in, or has closed
  };
  // The committed state.
  struct Contents {
    ElementId next_element = 1;
    bool closed = false;
    std::vector<std::pair<ElementId, QueueElement>> elements;  // oldest first
  };
  struct AttemptLog {
    RunId run;
    std::vector<std::pair<WriteKey, std::vector<Enqueued>>> enqueues;  // in order of reservation
    std::map<WriteKey, Dequeued> dequeues;
    std::set<WriteKey> closes;    // of one node, by its replicas
    bool closed_for_all = false;  // by a node that is one for all replicas
    bool cancel_pending = false;
    std::optional<Contents> contents;  // replaces everything (a restore)
    std::uint32_t keys() const {
      return std::uint32_t(enqueues.size() + dequeues.size() + closes.size());
    }
    std::int64_t entering() const;  // its own elements that no dequeue of the run has taken
    std::int64_t leased() const;    // committed elements that its dequeues have taken
    bool closed_to(std::uint32_t replica) const;  // whether it may put in no more
  };
};

// The state machine of one queue.
//
// An Enqueue reserves room now; other runs see its elements when its run commits. A Dequeue marks
// unmarked committed elements for its run. They leave at commit, and are unmarked if the run ends
// otherwise, so nothing is lost or reordered. The queue's order selects them: the oldest, random
// ones, or those of the lowest priority. A run's own elements come after the committed ones, or in
// order of priority.
//
// A batch enters or leaves as a whole: nothing is reserved or marked for one that waits. So a
// cancelled run has nothing to put back, and a batch above the capacity is refused at once.
//
// Back-pressure is a delayed reply: requests wait in order of arrival on each side. None overtakes
// another, except those that were answered before, ask for no elements, or can get an element that
// only their run can have. A repeated run gets the elements that its earlier attempt had marked;
// from a priority queue those or lower ones.
//
// Draws are a function of the seed, the queue's name, the run's snapshot and the element, so
// neither the order of arrival nor a restart changes them.
//
// Owned by one actor; no clock, no thread. Every input appends the messages to send to `out`. An
// operation's key makes it idempotent; `id` is the caller's, and returned in the reply. A request
// of an attempt that is over is answered `aborted`.
class QueueState final
    : public QueueTypes,
      public Participant<QueueTypes::AttemptLog, QueueTypes::AttemptLog, QueueTypes::Output> {
 public:
  // REQUIRES: spec.check().ok().
  explicit QueueState(QueueSpec spec);
  const QueueSpec& spec() const { return spec_; }
  // invalid_argument, naming both, unless `other` describes the same queue.
  Status compatible(const QueueSpec& other) const;

  // invalid_argument for a wrong number of components, dtype or shape; cancelled once closed;
  // failed_precondition if the run's own marks fill the queue.
  void enqueue(Request request, QueueElement element, Outputs& out);
  // The rows of a batch, in order. Does nothing for zero rows, even once closed.
  void enqueue_many(Request request, const QueueElement& batch, Outputs& out);
  // out_of_range if closed and no more elements can arrive.
  void dequeue(Request request, Outputs& out);
  // invalid_argument if n is negative or above the capacity, or elements cannot be stacked;
  // resource_exhausted if there is no memory for the batch.
  void dequeue_many(Request request, std::int64_t n, bool up_to, Outputs& out);
  // Takes effect at commit, after the enqueues that wait then; `cancel_pending` cancels these
  // instead. cancelled if the queue is closed or being closed, but by other replicas of the node.
  // `of_replica`: the run's other replicas may put elements in until they close it themselves.
  void close(Request request, bool cancel_pending, Outputs& out, bool of_replica = false);
  // Answers with the result of `look` for the run's view. A read: has no write key.
  using Look = std::vector<Tensor> (*)(const QueueView&);
  void look(Request request, Look look, Outputs& out);

  void stage(const StageRequest& request, Outputs& out);  // see Participant
  void live(const LiveList& list, Outputs& out);

  bool closed() const { return closed_; }
  // The committed elements, oldest first, including marked ones (for tests).
  std::vector<QueueElement> elements() const;

  // As in Resource. Waiting enqueues are not saved, so a close that waits for them is saved as
  // done.
  Expected<ResourceState> save() const;
  Status load(const ResourceState& state);
  Expected<ResourceState> record() const;
  Status stage_record(const ResourceState& state, Outputs& out);
  // The same as requests of a run: saves what the run sees, or loads at its commit.
  void save_for(Request request, Outputs& out);
  void load_for(Request request, const Tensor& bytes, Outputs& out);

  // Sizes of tables that are empty when nothing runs.
  struct Tables {
    std::size_t logs = 0, leases = 0, waiters = 0, staged = 0, old_views = 0;
    bool empty() const { return logs + leases + waiters + staged + old_views == 0; }
  };
  Tables tables() const;
  // As in Resource.
  bool at_rest() const {
    return Participant::at_rest() && tables().empty() && session_from_.empty();
  }

 private:
  enum class Side : std::uint8_t { enqueue, dequeue };
  struct Waiter {
    std::vector<std::uint64_t> ids;  // of the request and its repetitions
    AttemptInfo attempt;
    WriteKey key;
    std::vector<QueueElement> elements;  // of an enqueue
    Wanted wanted;                       // of a dequeue
    bool close_marker = false;           // a committed close behind pending enqueues
  };
  using Waiters = std::list<Waiter>;
  // An element that a dequeue may take: a committed one (marked for its run, or free), or its own.
  struct Source {
    ElementId id = 0;
    const QueueElement* value = nullptr;
    const Lease* mark = nullptr;
    Enqueued* own = nullptr;
  };

  Waiters& waiters(Side side) { return side == Side::enqueue ? enqueuers_ : dequeuers_; }
  void raise_min_live(CommitNumber min_live);
  void forget_views();
  bool refuse(const Request& request, Outputs& out) const;
  bool over(const AttemptId& attempt, const RunId& run) const;
  bool over(const AttemptId& attempt, const AttemptLog& log) const override {
    return over(attempt, log.run);
  }
  void end_attempts(Outputs& out);
  void hear(const AttemptInfo& attempt, Outputs& out);
  void submit(Side side, Request request, Waiter waiter, Outputs& out);
  std::optional<Reply> try_enqueue(const Waiter& request);
  std::optional<Reply> try_dequeue(const Waiter& request);
  std::optional<Reply> try_op(Side side, const Waiter& request);
  std::optional<Reply> hopeless(Side side, const Waiter& request) const;
  bool needs_no_turn(Side side, const Waiter& request) const;
  std::set<ElementId> used_by(const AttemptLog& log) const;
  std::vector<Source> sources(const AttemptInfo& attempt, AttemptLog& log, std::int64_t n);
  void put_first(std::vector<Source>& all, std::size_t n, CommitNumber snapshot) const;
  std::array<std::uint64_t, 3> rank(const Source& source, std::uint64_t place,
                                    CommitNumber snapshot) const;
  std::int64_t kept(const AttemptLog& log) const;
  Reply take(std::span<const Source> sources, const Waiter& request, AttemptLog& log, bool own);
  bool marked_by(const Lease& lease, const AttemptInfo& attempt) const;
  std::int64_t marks(const AttemptInfo& attempt) const;
  bool nothing_can_come(const AttemptInfo& attempt) const;
  const AttemptLog* log_of(const AttemptInfo& attempt) const;
  void remember_view();
  QueueView view_of(const AttemptInfo& attempt) const;
  std::int64_t own_marks(const AttemptInfo& attempt) const;
  std::int64_t reserved() const;
  std::string name() const override { return "queue '" + spec_.name + "'"; }
  std::uint32_t keys_of(const AttemptLog& log) const override { return log.keys(); }
  Expected<std::pair<std::uint64_t, AttemptLog>> record_of(CommitNumber s, const AttemptId& attempt,
                                                           AttemptLog log) override;
  Status commit(CommitNumber s, const AttemptId& attempt, AttemptLog log, Outputs& out) override;
  void take_contents(Contents contents);
  Contents contents() const;
  static void order_copies(AttemptLog& log);
  static void write(const Contents& contents, StateWriter& out);
  Expected<Contents> read_contents(StateReader& in) const;
  Expected<AttemptLog> read_log(StateReader& in) const;
  Status fits(const AttemptLog& log) const;
  void commit_close(bool cancel_pending, Outputs& out);
  bool serve_side(Side side, Outputs& out);
  void serve(Outputs& out);
  void report_blocked(Outputs& out);
  std::string plight() const;

  const QueueSpec spec_;
  const std::uint64_t draws_;                   // hash of seed and name
  std::map<ElementId, QueueElement> elements_;  // committed
  std::map<ElementId, Lease> leases_;           // of some of them
  ElementId next_element_ = 1;
  std::map<CommitNumber, QueueView> views_;  // after each commit that may still be read
  CommitNumber min_live_ = 0;
  bool closed_ = false;   // accepts no more elements
  bool closing_ = false;  // a committed close waits behind pending enqueues
  std::map<std::uint64_t, AttemptId> session_from_;  // from requests newer than the LiveList
  Waiters enqueuers_, dequeuers_;                    // in order of arrival
  Blocked reported_;
};

}  // namespace troupe
